"""Rows and submissions for reports over whole runs: the same as what is read row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from store_events import ended, planned, started, submission, submitted, whole_job

from aver.core.events import FlowReplaced, RunMoved, Usage
from aver.core.exit import ExitStatus
from aver.core.states import State
from aver.errors import AverError
from aver.store.reader import Reader
from aver.store.writer import Writer


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
