"""Rows and submissions for reports over whole runs: the same as what is read row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_events import ended, planned, started, submission, submitted, whole_job

from aver.errors import AverError
from aver.model.events import Event, FlowReplaced, Observed, RunMoved, StepEnded, StepStarted, TaskEnded, Usage
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import StepSpec
from aver.model.record import replace
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Run 1 with jobs 2 to 6: 2 is done, 3 runs, 4 failed and was tried again, 5 and 6 have no attempt."""
    made = tmp_path / "aver.db"
    writer = Writer.open(made)
    writer.commit([submitted(1, 2, 5), *whole_job(2), planned(3), started(3)])
    failed = ended(4, state=State.FAILED, ended_as=ExitStatus(code=3), job_state=State.PENDING, job_reason="Retry")
    writer.commit([planned(4), failed, planned(4, 2), ended(4, 2, usage=Usage(102.0, 5.0, None, 0.5, 0))])
    writer.close()
    return made


@pytest.fixture
def reader(path: Path) -> Iterator[Reader]:
    found = Reader.open(path)
    assert found is not None
    yield found
    found.close()


def test_a_row_for_each_job_and_attempt(reader: Reader) -> None:
    """By job and attempt; a job without one has a row of its own; the figures are those of the attempts."""
    rows = reader.outcomes(1)
    assert [(row.job, row.attempt, row.state) for row in rows] == [
        (2, 1, "COMPLETED"),
        (3, 1, "RUNNING"),
        (4, 1, "FAILED"),
        (4, 2, "COMPLETED"),
        (5, None, None),
        (6, None, None),
    ]
    for row in rows:
        job = reader.job(row.job)
        assert job is not None
        assert (row.name, row.job_state, row.job_reason, row.member) == (job.name, job.state, job.reason, job.member)
        for attempt in reader.attempts(row.job):
            if attempt.attempt == row.attempt:
                assert row.request is not None
                assert reader.request(row.request) == attempt.request
                assert (row.elapsed_s, row.user_s, row.node) == (attempt.elapsed_s, attempt.user_s, attempt.node)


def test_a_peak_of_nothing_is_not_known(reader: Reader) -> None:
    """A process that ran used memory."""
    assert [row.peak_bytes for row in reader.outcomes(1)] == [4096, None, 4096, None, None, None]


def test_no_such_run(reader: Reader) -> None:
    """It has no rows and no submission."""
    assert reader.outcomes(99) == []
    assert reader.sketch(99) is None
    assert reader.origin(99) is None


def test_a_state_of_a_newer_version_is_refused(path: Path) -> None:
    """A word that nobody here knows is an error that names it, not a guess."""
    connection = sqlite3.connect(path)
    connection.execute("UPDATE attempts SET state = 'DREAMING' WHERE job = 3")
    connection.commit()
    connection.close()
    with Reader.open(path) as reader, pytest.raises(AverError, match="DREAMING"):  # type: ignore[union-attr]
        reader.outcomes(1)


def test_a_sketch_is_the_submission_in_parts(path: Path, reader: Reader) -> None:
    """The same jobs as in the whole, each when it is asked for; the flow that replaced another counts."""
    sketch = reader.sketch(1)
    assert sketch is not None
    whole = submission(5)
    assert sketch.spec(0) == whole.flow.jobs[0]
    assert sketch.head() == replace(whole, flow=replace(whole.flow, jobs=()))
    assert reader.origin(1) == whole.origin
    with pytest.raises(ValueError, match="no job 7"):
        sketch.spec(7)
    changed = replace(whole.flow, jobs=(replace(whole.flow.jobs[0], comment="new"),))
    writer = Writer.open(path)
    writer.commit([FlowReplaced(200.0, 1, "ann", changed), RunMoved(200.0, 1, State.PENDING, 2)])
    writer.close()
    newer = reader.sketch(1)
    assert newer is not None
    assert newer.spec(0).comment == "new"


def step(job: int, number: int, begin: float, end: float, *tasks: Event, state: State = State.COMPLETED) -> list[Event]:
    """A step of the first attempt, with these tasks."""
    exit_status = ExitStatus() if state is State.COMPLETED else None
    verdict = Verdict(state, exit_status, "None", True, "witness")
    spec = StepSpec("work", ("work",), "/", tasks=max(1, len(tasks)))
    ended_step = StepEnded(end, 1, job, 1, number, verdict, 0)
    return [StepStarted(begin, 1, job, 1, number, f"{job}.{number}", spec), *tasks, ended_step]


def task(job: int, number: int, rank: int, usage: Usage | None, reason: str = "None") -> TaskEnded:
    failed = reason != "None"
    verdict = Verdict(
        State.FAILED if failed else State.COMPLETED, None if failed else ExitStatus(), reason, True, "witness"
    )
    return TaskEnded(109.0, 1, job, 1, number, rank, "{}", verdict, usage)


@pytest.mark.parametrize(
    ("steps", "cpu_s", "peak"),
    [
        ([(103, 105, [(2.0, 8 << 20), (3.0, 9 << 20)])], 1.5 + 5.0, 4096 + (17 << 20)),  # both tasks, and the script
        ([(103, 105, [(2.0, 8 << 20)]), (106, 108, [(3.0, 9 << 20)])], 6.5, 4096 + (9 << 20)),  # one after the other
        ([(103, 107, [(2.0, 8 << 20)]), (106, 108, [(3.0, 9 << 20)])], 6.5, 4096 + (17 << 20)),  # at the same time
        ([(103, 105, [None])], None, None),  # a task that was not measured
        ([(103, 105, [])], None, None),  # a step whose tasks nobody saw
        ([(103, 105, ["JobLaunchFailure"])], 1.5, 4096),  # could not start: used nothing
        ([(103, 103, State.CANCELLED)], 1.5, 4096),  # cancelled before it began
    ],
)
def test_steps_are_part_of_what_an_attempt_used(
    tmp_path: Path, steps: list[tuple[float, float, Any]], cpu_s: float | None, peak: int | None
) -> None:
    """In rows of reports and of attempts alike; what is not known of a step is not known of the whole."""
    happened: list[Event] = []
    for number, (begin, end, tasks) in enumerate(steps):
        if tasks is State.CANCELLED:
            happened += step(2, number, begin, end, state=State.CANCELLED)
            continue
        ended_tasks = [
            task(2, number, rank, None, one) if isinstance(one, str)
            else task(2, number, rank, None if one is None else Usage(begin, end - begin, one[0], 0.0, one[1]))
            for rank, one in enumerate(tasks)
        ]  # fmt: skip
        happened += step(2, number, begin, end, *ended_tasks)
    writer = Writer.open(tmp_path / "aver.db")
    writer.commit(
        [submitted(1, 2, 1), planned(2), started(2), *happened, ended(2), RunMoved(111.0, 1, State.COMPLETED)]
    )
    writer.close()
    reader = Reader.open(tmp_path / "aver.db")
    assert reader is not None
    with reader:
        for row in (reader.outcomes(1)[0], reader.attempts(2)[0], reader.attempts_of_run(1)[0]):
            used = None if row.user_s is None or row.sys_s is None else row.user_s + row.sys_s
            assert (used, row.peak_bytes) == (cpu_s, peak)


def test_what_others_measured_has_the_steps_in_it_already(tmp_path: Path) -> None:
    """Accounting's figures are those of the whole job."""
    verdict = Verdict(State.COMPLETED, ExitStatus(), "None", True, "accounting")
    usage = Usage(102.0, 5.0, 9.0, 1.0, 1 << 30)
    said = Observed(110.0, 1, 2, 1, "sacct", "…", State.COMPLETED, "None", verdict, usage)
    of_step = step(2, 0, 103, 105, task(2, 0, 0, Usage(103.0, 2.0, 8.0, 1.0, 1 << 29)))
    writer = Writer.open(tmp_path / "aver.db")
    writer.commit([submitted(1, 2, 1), planned(2), started(2), *of_step, said])
    writer.close()
    reader = Reader.open(tmp_path / "aver.db")
    assert reader is not None
    with reader:
        row = reader.outcomes(1)[0]
    assert (row.user_s, row.sys_s, row.peak_bytes) == (9.0, 1.0, 1 << 30)


def test_a_script_whose_memory_nobody_measured_makes_that_of_the_whole_unknown(tmp_path: Path) -> None:
    """What its steps had is not all: nothing may be saved by it."""
    verdict = Verdict(State.COMPLETED, ExitStatus(), "None", True, "witness")
    said = Observed(110.0, 1, 2, 1, "witness", "…", State.COMPLETED, "None", verdict, Usage(102.0, 5.0, 9.0, 1.0, None))
    of_step = step(2, 0, 103, 105, task(2, 0, 0, Usage(103.0, 2.0, 8.0, 1.0, 1 << 29)))
    writer = Writer.open(tmp_path / "aver.db")
    writer.commit([submitted(1, 2, 1), planned(2), started(2), *of_step, said])
    writer.close()
    reader = Reader.open(tmp_path / "aver.db")
    assert reader is not None
    with reader:
        row = reader.outcomes(1)[0]
    assert (row.user_s, row.peak_bytes) == (17.0, None)
