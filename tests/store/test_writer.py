"""What a commit promises, in peace and in trouble."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store_events import planned, submission, submitted, whole_job

import aver
from aver.errors import CantWriteError, InternalError, UsageError
from aver.model.events import JobMoved, RunSubmitted
from aver.model.job import Argv, FlowSpec, JobSpec, Origin, Submission
from aver.model.states import State
from aver.store import schema
from aver.store.read.reader import Reader
from aver.store.write import writer
from aver.store.write.writer import Writer
from store_replay import replay

JOBS_PER_BATCH = 10
EVENTS_PER_BATCH = 1 + 2 * JOBS_PER_BATCH


def read(path: Path) -> Reader:
    reader = Reader.open(path)
    assert reader is not None
    return reader


def start_committing(path: Path, first_run: int, limit_bytes: int = 0) -> subprocess.Popen[str]:
    program = Path(__file__).with_name("committing_writer.py")
    source = str(Path(aver.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, str(program), str(path), str(first_run), str(limit_bytes)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )


def test_a_new_database_is_its_owners_alone_and_starts_at_one(tmp_path: Path) -> None:
    """Mode 0600 for the file and its log, an identity of 8 hex digits that stays, and numbers from 1."""
    path = tmp_path / "aver.db"
    first = Writer.open(path)
    assert (first.next_id(), first.last_seq, len(bytes.fromhex(first.home_id))) == (1, 0, 4)
    first.commit([submitted()])
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first.close()
    again = Writer.open(path)
    assert (again.home_id, again.next_id(), again.last_seq) == (first.home_id, 3, 1)
    again.close()


def test_commit_returns_the_number_of_the_last_event(tmp_path: Path) -> None:
    """Numbers grow by one for each event; committing nothing changes nothing."""
    store = Writer.open(tmp_path / "aver.db")
    assert store.commit([submitted(), *whole_job()]) == 4
    assert store.commit([]) == 4
    assert store.commit([JobMoved(1.0, 1, 2, State.PENDING, "Retry")]) == 5
    assert [one.seq for one in read(store.path).events()] == [1, 2, 3, 4, 5]
    store.close()


def test_killed_at_any_moment_it_has_whole_batches_and_all_that_were_acknowledged(tmp_path: Path) -> None:
    """kill -9 in the middle of commits, many times over one database: nothing half, nothing lost, tables as events."""
    path = tmp_path / "aver.db"
    Writer.open(path).close()
    chance = random.Random(7)
    acknowledged: set[int] = set()
    next_run = 1
    for _ in range(12):
        child = start_committing(path, next_run)
        assert child.stdout is not None
        acknowledged.add(int(child.stdout.readline()))
        stop_at = time.monotonic() + chance.random() * 0.05
        while time.monotonic() < stop_at:
            acknowledged.add(int(child.stdout.readline()))
        child.kill()
        acknowledged.update(int(line) for line in child.stdout if line.endswith("\n"))
        child.wait()
        with read(path) as reader:
            runs = {row.id for row in reader.runs()}
            assert acknowledged <= runs
            assert reader.last_seq() == EVENTS_PER_BATCH * len(runs)
            for run in runs:
                assert reader.counts(run) == {State.COMPLETED: JOBS_PER_BATCH}
            next_run = max(runs) + JOBS_PER_BATCH + 1
    assert replay(path) == []


def test_a_full_disk_refuses_the_whole_batch_and_it_can_be_committed_again(tmp_path: Path) -> None:
    """With no room for the next write the error names the file, nothing is half done, and a second try works."""
    path = tmp_path / "aver.db"
    child = start_committing(path, 1, limit_bytes=400_000)
    output, _ = child.communicate(timeout=60)
    lines = output.splitlines()
    assert child.returncode == 0, output
    refused = [line for line in lines if line.startswith("refused")]
    assert len(refused) == 1
    assert f"can't write {path}: " in refused[0]
    committed = [int(line) for line in lines if not line.startswith("refused")]
    with read(path) as reader:
        assert sorted(row.id for row in reader.runs()) == committed
        assert reader.last_seq() == EVENTS_PER_BATCH * len(committed)
    assert replay(path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder_is_a_sentence(tmp_path: Path) -> None:
    """A home that can't be written is said with the file's name."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o500)
    with pytest.raises(CantWriteError, match=r"can't write .*aver\.db: "):
        Writer.open(folder / "aver.db")


def test_a_missing_folder_is_a_sentence(tmp_path: Path) -> None:
    """What can't be made is said with the file's name."""
    with pytest.raises(CantWriteError, match=r"can't write .*aver\.db: No such file"):
        Writer.open(tmp_path / "gone" / "aver.db")


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Neither writer nor reader touches what it does not understand."""
    path = tmp_path / "aver.db"
    Writer.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    for opening in (Writer.open, Reader.open):
        with pytest.raises(UsageError, match="newer Aver"):
            opening(path)


def test_an_older_database_is_migrated_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it held is still there, and the new version's step has been done once."""
    path = tmp_path / "aver.db"
    old = Writer.open(path)
    old.commit([submitted()])
    old.close()
    steps = (*schema.MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT",))
    monkeypatch.setattr(writer, "MIGRATIONS", steps)
    monkeypatch.setattr(writer, "VERSION", len(steps))
    monkeypatch.setattr("aver.store.open.VERSION", len(steps))
    for _ in range(2):
        new = Writer.open(path)
        assert new.next_id() == 3
        new.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT id, note FROM runs").fetchall() == [(1, None)]


def test_garbage_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A file that is no database stays as it is."""
    path = tmp_path / "aver.db"
    path.write_bytes(b"not a database" * 500)
    with pytest.raises(CantWriteError, match="damaged, or is not a database"):
        Writer.open(path)
    assert path.read_bytes() == b"not a database" * 500


def test_events_that_can_not_be_stored_store_nothing(tmp_path: Path) -> None:
    """A number that JSON lacks and a run that is there already are bugs of the caller, and the batch is undone."""
    store = Writer.open(tmp_path / "aver.db")
    store.commit([submitted()])
    for wrong in (JobMoved(float("nan"), 1, 2, State.PENDING, "x"), submitted()):
        with pytest.raises(InternalError):
            store.commit([planned(), wrong])
        assert store.last_seq == 1
    with read(store.path) as reader:
        assert reader.last_seq() == 1
        assert reader.attempts(2) == []
    assert store.commit([planned()]) == 2
    store.close()


def test_odd_names_and_bytes_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    """The submission comes back exactly; columns spell out what SQLite's text can't hold."""
    odd = b"a\xff\x00\n'\"{}\xc3\xa9".decode("utf-8", "surrogateescape") + "😀"
    flow = FlowSpec(odd, (JobSpec(odd, Argv((odd, "")), env=((odd, odd),)),))
    sent = Submission(flow, Origin(odd, 1, "h", odd, 0))
    store = Writer.open(tmp_path / "aver.db")
    store.commit([RunSubmitted(1.0, 1, 1, sent), JobMoved(2.0, 1, 1, State.PENDING, odd)])
    with read(store.path) as reader:
        assert reader.submission(1) == sent
        assert reader.job(1).name == "a\\udcff\\x00\n'\"{}é😀"  # type: ignore[union-attr]
        assert reader.find("a\\udcff\\x00\n'\"{}é😀") == reader.jobs()
        assert next(reader.events(job=1)).event == JobMoved(2.0, 1, 1, State.PENDING, odd)
    store.close()
    assert replay(store.path) == []


def test_a_path_with_odd_characters_works(tmp_path: Path) -> None:
    """Question marks, percent signs, hashes and bytes that are not UTF-8 in the home's path mean themselves."""
    folder = tmp_path / os.fsdecode(b"a?b#c%41 \xff")
    folder.mkdir()
    store = Writer.open(folder / "aver.db")
    store.commit([submitted()])
    with read(folder / "aver.db") as reader:
        assert len(reader.jobs()) == 1
    store.close()
    assert sorted(os.listdir(folder)) == ["aver.db", "committed"]


def test_on_a_network_file_system_there_is_no_write_ahead_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback journal is used, also for a database that had a log, and reads work beside it."""
    path = tmp_path / "aver.db"
    Writer.open(path).close()
    monkeypatch.setattr(writer, "is_on_network", lambda folder: True)
    store = Writer.open(path)
    store.commit([RunSubmitted(1.0, 1, 2, submission(3))])
    assert not (tmp_path / "aver.db-wal").exists()
    with read(path) as reader:
        store.commit(whole_job())
        assert reader.counts(1) == {State.COMPLETED: 1, State.PENDING: 2}
    store.close()


def test_a_reader_undoes_what_a_killed_writer_left_in_a_rollback_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half-written commit without a log is rolled back by whoever comes first, a reader too."""
    path = tmp_path / "aver.db"
    monkeypatch.setattr(writer, "is_on_network", lambda folder: True)
    store = Writer.open(path)
    store.commit([submitted()])
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("PRAGMA cache_spill = 1")
    connection.execute("BEGIN")
    connection.execute("UPDATE runs SET state = 'FAILED'")
    for number in range(2000):
        connection.execute("INSERT INTO meta VALUES (?, 1)", (f"half {number} " + "x" * 100,))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("aver.db", "aver.db-journal"):
        shutil.copy(tmp_path / name, crashed / name)
    connection.execute("ROLLBACK")
    connection.close()
    store.close()
    assert crashed.joinpath("aver.db").stat().st_size > path.stat().st_size
    with read(crashed / "aver.db") as reader:
        assert [row.state for row in reader.runs()] == [State.PENDING]


def test_runs_of_one_commit_in_any_order_leave_no_number_to_be_given_twice(tmp_path: Path) -> None:
    """A run whose folder was slow is committed after one with later numbers, in one commit."""
    with contextlib.closing(Writer.open(tmp_path / "aver.db")) as store:
        store.commit([submitted(run=3, first_job=4, jobs=5), submitted(run=1, first_job=2)])
        assert store.next_id() == 9
    with sqlite3.connect(tmp_path / "aver.db") as connection:  # a counter that an earlier version left behind
        assert connection.execute("SELECT value FROM meta WHERE key = 'next_id'").fetchone() == (9,)
        connection.execute("UPDATE meta SET value = 4 WHERE key = 'next_id'")
    connection.close()
    with contextlib.closing(Writer.open(tmp_path / "aver.db")) as store:
        assert store.next_id() == 9
