"""A large home on the live page: each view has a bounded size, however many jobs there are, and says what it cuts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from page import Page
from page_server import PageServer, served

from aver.home import Home
from aver.model import events as ev
from aver.model.job import FlowSpec, JobSpec, Matrix, Request, Shell, Submission
from aver.model.states import State
from aver.store.write.writer import Writer
from chromium import Browser
from past_runs import T0, attempt, origin

MOST_BYTES = 1 << 20
MEMBERS = 6000
RUNS = 250
LONG = "x" * 150  # of a job's name


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    folder = tmp_path_factory.mktemp("sizes")
    fill(Home(folder / "home"), folder)
    with served(folder / "home", folder) as found:
        yield found


def fill(home: Home, folder: Path) -> None:
    """Run 1 has 6000 members with long names, every other one failed, each in a second of its own; then many runs."""
    home.prepare()
    writer = Writer.open(home.database)
    request = Request(mem_bytes=1 << 30, time_s=60)
    values = tuple(f"{number:05}{LONG}" for number in range(MEMBERS))
    flow = FlowSpec("large", (JobSpec("train", Shell("train {seed}"), request, matrix=Matrix((("seed", values),))),))
    batch: list[ev.Event] = [ev.RunSubmitted(T0, 1, 2, Submission(flow, origin(folder)))]
    for number in range(MEMBERS):
        batch += attempt(1, 2 + number, 1, number, 0.5, (number % 200) << 8 if number % 2 else 0, request)
    batch.append(ev.RunMoved(T0 + MEMBERS, 1, State.FAILED))
    first = MEMBERS + 2
    for number in range(first, first + RUNS):
        single = FlowSpec("single" + LONG, (JobSpec("single" + LONG, Shell("false")),), is_single=True)
        batch.append(ev.RunSubmitted(T0, number, number, Submission(single, origin(folder))))
        batch += attempt(number, number, 1, number, 0.5, 256, request)
        batch.append(ev.RunMoved(T0 + number, number, State.FAILED))
    for begin in range(0, len(batch), 2000):
        writer.commit(batch[begin : begin + 2000])
    writer.close()


@pytest.mark.parametrize(
    ("path", "cut"),
    [
        ("now", None),
        ("runs", "next"),
        ("runs?limit=200", "next"),
        ("runs?engine=local&text=single", "next"),
        ("runs/1", None),
        ("runs/1/jobs", "left_out"),
        ("runs/1/jobs?limit=500&order=mem&turn=down", "left_out"),
        ("runs/1/jobs?limit=500&state=FAILED&text=xx", "left_out"),
        ("runs/1/groups", None),
        ("runs/1/grid?group=2.0", "left_out"),
        ("runs/1/causes", None),
        ("runs/1/usage", None),
        ("jobs/3", None),
        ("compare?first=1&second=1", "left_out"),
    ],
)
def test_a_view_has_a_megabyte_at_most_and_says_what_it_cuts(server: PageServer, path: str, cut: str | None) -> None:
    answer = server.ask("GET", f"/{server.place}/api/{path}", {"Cookie": server.cookie})
    assert answer.status == 200, answer
    assert len(answer.text.encode()) <= MOST_BYTES, len(answer.text)
    if cut is not None:
        assert answer.data[cut], f"{path} does not say that it is cut"


def test_pages_together_have_every_job_once(server: PageServer) -> None:
    """What a page cuts, the next one has."""
    seen: list[int] = []
    after = ""
    while True:
        found = server.get(f"runs/1/jobs?limit=500&order=time{after}")
        seen += [one["job"]["id"] for one in found["jobs"]]
        if found["next"] is None:
            break
        after = f"&after={found['next']}"
    assert sorted(seen) == list(range(2, MEMBERS + 2))


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_the_page_says_what_it_does_not_show(browser: Browser, server: PageServer) -> None:
    """The table, the members and the comparison say how many more there are; the bytes that a view loads are few."""
    page = Page(browser, server)
    page.open("runs/1?group=2.0", "large: FAILED")
    page.see("200 of 6,000 jobs; the others are on the next pages.")
    page.click("[data-part$='grid']")
    page.see("members more, not shown here.", "#grid")
    page.open("runs", "Runs")
    page.see("50 runs, newest first; older ones follow.")
    page.open("compare?first=1&second=1", "runs 1 and 1")
    page.see("jobs more, not shown here.")
    page.value("performance.clearResourceTimings()")
    page.open("runs/1", "large: FAILED")
    page.wait("performance.getEntriesByType('resource').some((one) => one.name.endsWith('/jobs'))")
    loaded = page.value("performance.getEntriesByType('resource').reduce((sum, one) => sum + one.encodedBodySize, 0)")
    assert 0 < loaded <= MOST_BYTES
    page.is_quiet()
