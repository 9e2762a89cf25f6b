"""Reads: without a writer, beside one, after one was killed, and of files that are not what they should be."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_events import ended, planned, started, submission, submitted, whole_job

from aver.errors import AverError
from aver.model.events import JobMoved, JobsEnded, RunMoved
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.states import SETTLED, State
from aver.store.read import reader as reader_module
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store: run 1 with jobs 2-6 (two done, one running), run 7 with job 7, settled."""
    made = tmp_path / "aver.db"
    writer = Writer.open(made)
    writer.commit([submitted(1, 2, 5), *whole_job(2), planned(3), started(3)])
    writer.commit([planned(4), ended(4, state=State.FAILED, ended_as=ExitStatus(signal=11, core=True))])
    writer.commit([submitted(7, 7), *whole_job(7, run=7), RunMoved(9.0, 7, State.COMPLETED)])
    writer.close()
    return made


@pytest.fixture
def reader(path: Path) -> Iterator[Reader]:
    found = Reader.open(path)
    assert found is not None
    yield found
    found.close()


def test_without_a_database_there_is_no_reader(tmp_path: Path) -> None:
    """No file, and a file whose tables are not made yet, are both "nothing yet", and none is made."""
    path = tmp_path / "aver.db"
    assert Reader.open(path) is None
    assert not path.exists()
    path.touch()
    assert Reader.open(path) is None
    sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").connection.close()
    assert Reader.open(path) is None


def test_everything_reads_with_no_writer(reader: Reader) -> None:
    """Rows are typed and complete after the writer has closed."""
    assert [row.id for row in reader.runs()] == [7, 1]
    assert [row.id for row in reader.runs(limit=1)] == [7]
    assert [row.id for row in reader.runs(states=[State.PENDING])] == [1]
    assert reader.run(99) is None
    assert reader.job(99) is None
    assert reader.submission(1) == submission(5)
    assert reader.submission(99) is None
    assert reader.unsettled_runs() == [1]
    assert reader.counts(1) == {State.COMPLETED: 1, State.RUNNING: 1, State.FAILED: 1, State.PENDING: 2}
    failed = reader.job(4)
    assert failed is not None
    assert failed.exit == ExitStatus(signal=11, core=True)
    assert [row.job for row in reader.attempts_of_run(1)] == [2, 3, 4]


def test_jobs_are_chosen_by_run_state_and_place(reader: Reader) -> None:
    """Filters combine, and `after` with `limit` pages through."""
    assert [row.id for row in reader.jobs()] == [2, 3, 4, 5, 6, 7]
    assert [row.id for row in reader.jobs(run=1, after=3, limit=2)] == [4, 5]
    assert [row.id for row in reader.jobs(states=SETTLED)] == [2, 4, 7]
    assert [row.id for row in reader.jobs(run=1, states=[State.RUNNING])] == [3]
    assert reader.jobs(states=[]) == []
    assert [row.id for row in reader.newest_jobs(2)] == [7, 6]
    assert sorted(reader.jobs_by_id([7, 2, 99])) == [2, 7]
    assert [row.id for row in reader.find("train[seed=1]")] == [3]
    assert reader.find("train[seed=1]", run=7) == []


def test_events_are_paged_and_chosen(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is that of the commits, over pages, from any place, for a run or a job."""
    monkeypatch.setattr(reader_module, "EVENTS_PER_PAGE", 2)
    everything = list(reader.events())
    assert [one.seq for one in everything] == list(range(1, 14))
    assert list(reader.events(after=4, limit=3)) == everything[4:7]
    assert [one.seq for one in reader.events(run=7)] == [9, 10, 11, 12, 13]
    assert [one.seq for one in reader.events(job=4)] == [7, 8]
    assert [one.seq for one in reader.events(run=7, job=4)] == []


def test_jobs_that_ended_together_have_an_event_each(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One stored event of many jobs reads as a move of each, with numbers in a row, from any place and for any job."""
    monkeypatch.setattr(reader_module, "EVENTS_PER_PAGE", 2)
    verdict = Verdict(State.CANCELLED, None, "None", True, "coordinator", (), "cancelled")
    writer = Writer.open(path)
    writer.commit([submitted(8, 9, 5), JobsEnded(20.0, 8, 10, 12, verdict), RunMoved(21.0, 8, State.CANCELLED)])
    writer.close()
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        moves = {15 + at: JobMoved(20.0, 8, 10 + at, State.CANCELLED, "None", verdict) for at in range(3)}
        everything = list(reader.events(after=13))
        assert [one.seq for one in everything] == [14, 15, 16, 17, 18]
        assert {one.seq: one.event for one in everything[1:4]} == moves
        assert [one.seq for one in reader.events(after=15)] == [16, 17, 18]
        assert [one.seq for one in reader.events(after=13, limit=2)] == [14, 15]
        assert [one.seq for one in reader.events(run=8)] == [14, 15, 16, 17, 18]
        assert [(one.seq, one.event) for one in reader.events(job=11)] == [(16, moves[16])]
        assert list(reader.events(job=11, after=16)) == list(reader.events(job=9)) == []
        assert [one.seq for one in reader.changes(14, 2)] == [15, 16]
        assert [one.seq for one in reader.changes(16, 5)] == [17, 18]
        assert [one.seq for one in reader.verdicts(15, 5)] == [16, 17, 18]
        assert [one.seq for one in reader.moves(8, 12)] == [17]
        assert [one.seq for one in reader.moves(8, 13)] == []
        assert (reader.last_seq(), reader.last_seq_of_job(10), reader.last_seq_of_job(13)) == (18, 15, 0)
        assert reader.concerned(15, 5) == [(16, 8, 11), (17, 8, 12), (18, 8, None)]
        assert [row.state for row in reader.jobs(run=8)] == [State.PENDING, *3 * [State.CANCELLED], State.PENDING]
    writer = Writer.open(path)
    assert writer.last_seq == 18
    assert writer.commit([RunMoved(22.0, 8, State.CANCELLED)]) == 19
    writer.close()


def test_a_reader_beside_a_busy_writer_sees_whole_batches_and_stops_nobody(path: Path) -> None:
    """While batches are committed, each look shows a run with all its jobs or not at all; no iterator holds it up."""
    writer = Writer.open(path)
    reader = Reader.open(path)
    assert reader is not None
    unfinished = reader.events()
    next(unfinished)
    failures: list[BaseException] = []

    def commit_all() -> None:
        try:
            for run in range(10, 10 + 40 * 4, 4):
                writer.commit([submitted(run, run + 1, 3), *whole_job(run + 1, run=run)])
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=commit_all)
    thread.start()
    looks = 0
    while thread.is_alive() or looks == 0:
        looks += 1
        for run in reader.runs(limit=3):
            expected = {1: 5, 7: 1}.get(run.id, 3)
            assert sum(reader.counts(run.id).values()) == expected
    thread.join()
    assert failures == []
    assert len(reader.runs()) == 42
    reader.close()
    writer.close()


def test_an_unknown_state_is_an_error_not_a_guess(path: Path, reader: Reader) -> None:
    """A word of another version is said, with the row."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE jobs SET state = 'DREAMING' WHERE id = 3")
    with pytest.raises(AverError, match="job 3 has state 'DREAMING'"):
        reader.job(3)
    with pytest.raises(AverError, match="DREAMING"):
        reader.counts(1)


@pytest.mark.parametrize("raw", ["'seven'", "-1", "99999", "127"])
def test_an_exit_that_is_no_wait_status_is_unknown(path: Path, reader: Reader, raw: str) -> None:
    """It is None, never 0."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE jobs SET exit = {raw} WHERE id = 2")
    row = reader.job(2)
    assert row is not None
    assert row.exit is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("kind = 'Dreamt'", "knows no event Dreamt"),
        ("data = '{'", "event 2 can't be read"),
        ("data = '[]'", "Expected `object`, got `array`"),
        ("data = '{}'", "missing required field `key`"),
    ],
)
def test_an_event_that_can_not_be_read_is_said(path: Path, reader: Reader, change: str, sentence: str) -> None:
    """The error has the event's number and what is wrong with it."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE events SET {change} WHERE seq = 2")
    with pytest.raises(AverError, match=sentence):
        list(reader.events())


def test_a_damaged_file_is_a_sentence(path: Path, tmp_path: Path) -> None:
    """Garbage, and a database whose pages were overwritten, are said with the file's name."""
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"\x01" * 8192)
    with pytest.raises(AverError, match=r"garbage\.db is damaged, or is not a database"):
        Reader.open(garbage)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    damaged = Reader.open(path)
    assert damaged is not None
    with pytest.raises(AverError, match="is damaged"):
        damaged.jobs()


def test_a_closed_store_in_a_read_only_folder_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made beside the file, which SQLite would otherwise do to read a database with a log."""
    monkeypatch.setattr("os.access", lambda folder, mode: False)
    path.parent.chmod(0o500)
    try:
        with Reader.open(path) as reader:  # type: ignore[union-attr]
            assert sum(reader.counts(1).values()) == 5
            assert sorted(file.name for file in path.parent.iterdir()) == ["aver.db", "committed"]
    finally:
        path.parent.chmod(0o700)


def test_a_reader_can_not_write(reader: Reader) -> None:
    """Its connection refuses: there is one writer."""
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._connection.execute("DELETE FROM jobs")
