"""Listings of a home with very many jobs: what is chosen, in which order, and that no table is read whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import pytest
from store_events import ended, planned, started, submitted

from aver.model.events import Event, Usage
from aver.model.states import State
from aver.store.read.job_list import BY_NUMBER, SORTS, Wanted, find_jobs
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow
from aver.store.write.writer import Writer

NOW = 1000.0
RUNS, MEMBERS = 4, 6
ENDS = (State.COMPLETED, State.FAILED, State.TIMEOUT, State.COMPLETED, None, None)  # None: runs, waits


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Runs of six jobs: two completed, two failed, one runs and one waits; no two took the same time or memory."""
    path: Path = tmp_path_factory.mktemp("store") / "aver.db"
    writer = Writer.open(path)
    for run in range(RUNS):
        number = 1 + run * (MEMBERS + 1)
        events: list[Event] = [submitted(number, number + 1, MEMBERS, at=100.0 + run)]
        for member, state in enumerate(ENDS):
            job = number + 1 + member
            mixed = (job * 7) % 31  # no order of one kind is that of another
            if member < MEMBERS - 1:
                events += [planned(job, run=number), started(job, run=number, at=300.0 + mixed)]
            if state is not None:
                usage = Usage(300.0 + mixed, float((job * 11) % 29), 1.0, 0.5, 1 + (job * 13) % 37)
                events.append(ended(job, at=400.0 + job, state=state, run=number, usage=usage))
        writer.commit(events)
    writer.close()
    found = Reader.open(path)
    assert found is not None
    yield found
    found.close()


def expected(reader: Reader, wanted: Wanted) -> list[int]:
    """The same by reading every row."""

    def fits(job: JobRow) -> bool:
        name = wanted.name
        return (
            (wanted.run is None or job.run == wanted.run)
            and (wanted.states is None or job.state in wanted.states)
            and (wanted.since is None or job.ended_at is None or job.ended_at >= wanted.since)
            and (name is None or fnmatchcase(job.name, name) or job.name == name or job.name.partition("[")[0] == name)
        )

    def key(job: JobRow) -> tuple[float, int]:
        peaks = [attempt.peak_bytes or 0 for attempt in reader.attempts(job.id)]
        since_start = 0.0 if job.started_at is None else NOW - job.started_at
        value = {
            "id": job.id, BY_NUMBER: -job.id, "start": job.started_at or 0.0, "mem": max(peaks, default=0),
            "time": job.elapsed_s or 0.0 if job.ended_at is not None else since_start,
        }[wanted.sort]  # fmt: skip
        return value, job.id

    return [job.id for job in sorted(filter(fits, reader.jobs()), key=key, reverse=True)]


CHOICES = [
    Wanted(run, states, since, name, sort)
    for run, states, since, name, sort in product(
        (None, 8),
        (None, frozenset({State.FAILED, State.RUNNING}), frozenset({State.PENDING})),
        (None, 412.0),
        (None, "train", "train[[]seed=[!3]*", "train[seed=2]", "no*"),
        (*SORTS, BY_NUMBER),
    )
]


def test_jobs_are_chosen_and_sorted_as_their_rows_say(reader: Reader) -> None:
    """Every filter with every other, in every order, with and without a limit."""
    for wanted in CHOICES:
        right = expected(reader, wanted)
        for limit in (None, 3):
            assert find_jobs(reader, wanted, limit, NOW) == (right[:limit], len(right)), wanted


def test_no_table_is_read_whole(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query of a listing goes through an index that has all that it asks for, or looks up single rows."""
    asked: list[tuple[str, tuple[object, ...]]] = []
    real = reader.fetch

    def fetch(text: str, parameters: tuple[object, ...] = ()) -> list[object]:
        asked.append((text, tuple(parameters)))
        return real(text, parameters)

    monkeypatch.setattr(reader, "fetch", fetch)
    for wanted in CHOICES:
        reader.listed(find_jobs(reader, wanted, 3, NOW)[0])
    reader.newest_jobs(3)
    reader.count_jobs()
    reader.unsettled_counts()
    reader.unsettled_runs()
    reader.peaks([2, 3])
    reader.asked(3)
    for text, parameters in dict(asked).items():
        plan = [row[3] for row in real(f"EXPLAIN QUERY PLAN {text}", parameters)]
        assert not [line for line in plan if _reads_a_table(line, text)], (text, plan)
        if parameters == (3, "PersonAsked"):  # of a large run it reads what people asked for, not all that happened
            assert any("events_asked" in line for line in plan), plan


def _reads_a_table(line: str, text: str) -> bool:
    """Whether this step of a plan goes through the rows of a table; the newest ones are read from its end."""
    is_scan = re.match(r"SCAN (jobs|runs|attempts|events|steps|tasks|[ast])\b", line) is not None
    return is_scan and "INDEX" not in line and "ORDER BY id DESC LIMIT ?" not in text
