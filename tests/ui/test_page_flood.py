"""In a flood pages are told of changes seldom, and say so; of the job or run that one shows it hears at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from page import Page
from page_server import GATE, PageServer

from aver.model.job import Matrix
from aver.ui.feed import MOST_PAUSE_S, Feed, Subject
from live_home import LiveHome, shell_job

SOON_S = 2.0  # a paced page is up to 5 s behind; a verdict takes a tenth of a second where nothing else runs
FLOOD = Matrix((("n", tuple(str(number) for number in range(6000))),))


def begin(live: LiveHome, gate: Path) -> tuple[int, int]:
    """A job that waits for its gate, and a run of many short jobs."""
    job = live.submit(shell_job("mine", GATE), env={"GATE": str(gate)})
    live.wait_running(job)
    return job, live.submit(shell_job("n", "true", matrix=FLOOD), is_single=False)


class Told:
    """The events that one stream has sent."""

    def __init__(self) -> None:
        self.events: list[tuple[float, str, dict[str, object]]] = []

    async def follow(self, stream: AsyncIterator[bytes]) -> None:
        async for text in stream:
            words = dict(line.split(": ", 1) for line in text.decode().strip().splitlines() if ": " in line)
            self.events.append((time.monotonic(), words["event"], json.loads(words["data"])))

    def kinds(self, after: float) -> list[str]:
        return [kind for at, kind, _ in self.events if at > after]

    @property
    def pause_s(self) -> float:
        found = [data["pause_s"] for _, _, data in self.events if "pause_s" in data]
        return float(str(found[-1])) if found else 0.0


def burn(seconds: float) -> None:
    """Use the CPU as views that are asked for do: what pages cost sets the pause."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_page_hears_at_once_of_the_job_that_it_shows(live: LiveHome, tmp_path: Path) -> None:
    """While all others wait for the pause to end; and of nothing else that early."""
    gate = tmp_path / "gate"
    job, _ = begin(live, gate)

    async def look() -> None:
        feed, mine, others = Feed(live.home), Told(), Told()
        streams = [mine.follow(feed.stream(None, Subject("job", job))), others.follow(feed.stream(None))]
        tasks = [asyncio.create_task(one) for one in streams]
        try:
            end = time.monotonic() + 60
            while others.pause_s < MOST_PAUSE_S - 0.5:  # an event was told just now, and the next one is far
                assert time.monotonic() < end, others.events[-3:]
                burn(0.06)
                await asyncio.sleep(0.1)
            begun = time.monotonic()
            gate.touch()
            while "own" not in mine.kinds(begun):
                assert time.monotonic() < begun + SOON_S, mine.events[-3:]
                await asyncio.sleep(0.02)
            assert live.job(job).state == "COMPLETED"
            assert "own" not in others.kinds(0)
            assert "change" not in others.kinds(begun), "the flood is over: nothing was shown"
            await asyncio.sleep(1)
            assert mine.kinds(begun).count("own") == 1, "of its verdict alone"
        finally:
            feed.is_over = lambda: True
            await asyncio.gather(*tasks)

    asyncio.run(look())


def test_a_page_that_begins_late_hears_of_what_it_missed(live: LiveHome) -> None:
    """Its view was made before the verdict, and its stream began after it: `own` comes first."""
    job = live.run_text("exit 3")
    with live.reader() as reader:
        before = reader.last_seq()
    live.settle([job])
    with live.reader() as reader:
        after = reader.last_seq()
    assert after > before

    async def first(since: int, subject: Subject) -> list[str]:
        feed, told = Feed(live.home), Told()
        task = asyncio.create_task(told.follow(feed.stream(since, subject)))
        await asyncio.sleep(0.5)
        feed.is_over = lambda: True
        await task
        return told.kinds(0)

    for subject in (Subject("job", job), Subject("run", job)):
        assert "own" in asyncio.run(first(before, subject))
        assert "own" not in asyncio.run(first(after, subject))


def test_pages_that_come_at_the_same_moment_share_one_look(live: LiveHome) -> None:
    """As when a machine wakes up with ten pages: the store is looked at once for all of them, not ten times."""

    async def look() -> list[str]:
        feed = Feed(live.home)
        streams = [asyncio.create_task(Told().follow(feed.stream(None))) for _ in range(10)]
        await asyncio.sleep(0.5)
        looks = [task.get_coro() for task in asyncio.all_tasks() if task not in streams]
        feed.is_over = lambda: True
        await asyncio.gather(*streams)
        return [name for one in looks if (name := getattr(one, "__name__", "")) == "_look_again"]

    assert asyncio.run(look()) == ["_look_again"]


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_in_a_flood_the_page_says_so_and_shows_its_job_at_once(
    live: LiveHome, server: PageServer, page: Page, tmp_path: Path
) -> None:
    """The corner tells how often it is drawn; the verdict of the job that is shown does not wait for that."""
    gate = tmp_path / "gate"
    job, flood = begin(live, gate)
    page.open("now", "running")
    page.see("many changes: updates every", "#live")
    page.open(f"jobs/{job}", "mine: RUNNING")
    page.value(
        "window.seen = null; new MutationObserver(() => { if (document.title.includes('COMPLETED')) "
        "window.seen ??= Date.now(); }).observe(document.querySelector('title'), { childList: true })"
    )
    gate.touch()
    live.settle([job])
    durable_at = time.time()
    page.wait("window.seen !== null")
    assert page.value("window.seen") / 1000 - durable_at < SOON_S
    with live.reader() as reader:
        row = reader.run(flood)
        assert row is not None
        assert not row.state.is_settled, "the flood is over: nothing was shown"
    with live.client() as client:
        client.call("cancel", ids=[flood])
    live.settle([flood], 120)
    page.wait("document.querySelector('#live').innerText === 'live'")
    page.is_quiet()
