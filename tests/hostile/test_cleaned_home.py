"""Files of the home that a cleaner of old files, or a person, takes away under a running coordinator."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aver.errors import AverError, CantWriteError
from aver.model.states import State
from live_home import LiveHome, is_alive, pids, wait_for

Typed = Callable[..., subprocess.CompletedProcess[bytes]]

NOTE_AND_WAIT = 'echo $AVER_KEY >> "$RAN"; while [ ! -e go ]; do sleep 0.05; done'


def coordinators(live: LiveHome) -> list[int]:
    """Every coordinator of this home, whatever its files say."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"aver.coordinator" in command and os.fsencode(live.home.path) in command and is_alive(pid):
                found.append(pid)
    return found


def cpu_s(pid: int) -> float:
    """The CPU time that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(autouse=True)
def end_all_coordinators(live: LiveHome) -> Iterator[None]:
    yield
    for pid in coordinators(live):
        os.kill(pid, signal.SIGKILL)


def remove(live: LiveHome, *names: str) -> None:
    for name in names:
        (live.home.path / name).unlink()


def assert_gone(done: subprocess.CompletedProcess[bytes]) -> None:
    """The command has said that the store is gone, and did nothing."""
    assert done.returncode == 73, done
    assert b"was removed or replaced" in done.stderr


@pytest.mark.parametrize("names", [("lock", "sock"), ("lock",), ("sock",)], ids=" ".join)
def test_lock_and_socket_removed(live: LiveHome, names: tuple[str, ...]) -> None:
    """The one coordinator goes on, can be reached again, and no job runs twice."""
    waiting = live.run_text(NOTE_AND_WAIT)
    live.wait_running(waiting)
    pid = live.coordinator()
    assert pid is not None
    remove(live, *names)
    runs = [waiting, *[live.run_text('echo $AVER_KEY >> "$RAN"') for _ in range(3)]]
    wait_for(lambda: coordinators(live) == [pid], "one that found the lock held has left")
    wait_for(lambda: live.coordinator() == pid, "the lock names its holder again")
    (live.folder / "go").touch()
    live.settle(runs)
    assert [live.job(run).state for run in runs] == [State.COMPLETED] * 4
    assert sorted(live.keys_run().values()) == [1, 1, 1, 1]
    live.assert_store_is_whole()


def test_second_coordinator_by_hand(live: LiveHome) -> None:
    """Who starts one itself, with the lock's file gone, is told that there is one."""
    live.wait_running(live.run_text(NOTE_AND_WAIT))
    remove(live, "lock", "sock")
    command = [sys.executable, "-m", "aver.coordinator", str(live.home.path)]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    assert done.stdout == b"busy\n"
    assert len(coordinators(live)) == 1


def test_store_deleted_while_it_runs(live: LiveHome, typed: Typed) -> None:
    """It takes nothing new and says why; when the store is back it goes on, and nothing is lost."""
    running = live.run_text(NOTE_AND_WAIT)
    live.wait_running(running)
    live.kill_coordinator()
    live.connect_again()
    pid = live.coordinator()
    kept = live.folder / "kept"
    kept.mkdir()
    for path in live.home.path.glob("aver.db*"):
        path.rename(kept / path.name)
    with pytest.raises(CantWriteError, match=r"aver.db was removed or replaced .* nothing new is taken"):
        live.run_text("true")
    done = typed("run", "--", "true")
    assert_gone(done)
    assert "was removed or replaced" in live.home.log.read_text()
    assert coordinators(live) == [pid]
    for command in (("jobs",), ("status",), ("show", str(running))):
        assert_gone(typed(*command))
    for path in kept.iterdir():
        path.rename(live.home.path / path.name)
    (live.folder / "go").touch()
    live.settle([running])
    assert live.job(running).state is State.COMPLETED
    assert sorted(live.keys_run().values()) == [1]


def test_store_emptied_while_it_runs(live: LiveHome, typed: Typed) -> None:
    """The file is the same, and nothing is in it: nobody says that there are no jobs, and nothing is taken."""
    live.wait_running(live.run_text(NOTE_AND_WAIT))
    os.truncate(live.home.database, 0)
    for command in (("jobs",), ("status",), ("run", "--", "true")):
        assert_gone(typed(*command))
    assert "was removed or replaced" in live.home.log.read_text()
    assert len(live.keys_run()) == 1


def test_store_overwritten_by_an_older_copy(live: LiveHome, typed: Typed) -> None:
    """As `cp` does, which keeps the file: nothing new is taken until what was committed is there again."""
    live.settle([live.run_text("true")])
    typed("stop")
    live.wait_until_gone()
    older = live.home.database.read_bytes()
    live.settle([live.run_text("true")])
    typed("stop")
    live.wait_until_gone()
    newer = live.home.database.read_bytes()
    with live.client() as client:
        client.call("ping")
        live.home.database.write_bytes(older)
        assert_gone(typed("run", "--", "touch", "ran-anyway"))
        live.home.database.write_bytes(newer)
        assert typed("run", "--", "true").returncode == 0
    assert not (live.folder / "ran-anyway").exists()
    live.assert_store_is_whole()


def test_store_touched_while_it_runs(live: LiveHome) -> None:
    """Another program's checkpoint, or a new time of the file, takes nothing away."""
    live.settle([live.run_text("true")])
    with contextlib.closing(sqlite3.connect(live.home.database)) as other:
        other.execute("PRAGMA wal_checkpoint")
    os.utime(live.home.database)
    live.settle([live.run_text("true")])
    live.assert_store_is_whole()


def test_store_deleted_while_jobs_end(live: LiveHome, typed: Typed) -> None:
    """What witnesses tell meanwhile waits with them and keeps nobody busy; the coordinator can be stopped."""
    live.wait_running(live.run_text(f"{NOTE_AND_WAIT}; touch ended"))
    pid = live.coordinator()
    assert pid is not None
    for path in live.home.path.glob("aver.db*"):
        path.unlink()
    wait_for(lambda: "was removed or replaced" in live.home.log.read_text(), "the loss of the store is noticed")
    (live.folder / "go").touch()
    wait_for((live.folder / "ended").exists, "the job's end")
    before_s = cpu_s(pid)
    time.sleep(2.0)
    assert cpu_s(pid) - before_s < 0.3
    assert_gone(typed("stop"))
    wait_for(lambda: live.coordinator() is None, "the coordinator's end")


def test_store_deleted_under_who_waits(live: LiveHome, typed: Typed) -> None:
    """Who waits for a job hears of it, rather than waiting for ever."""
    command = [sys.executable, "-m", "aver", "run", "--", "sh", "-c", NOTE_AND_WAIT]
    env = {**os.environ, "RAN": str(live.ran)}
    with subprocess.Popen(command, cwd=live.folder, env=env, stderr=subprocess.PIPE) as waits:
        wait_for(live.keys_run, "the job runs")
        live.home.database.unlink()
        _, errors = waits.communicate(timeout=20)
    assert_gone(subprocess.CompletedProcess(command, waits.returncode, b"", errors))


def test_log_of_the_store_removed(live: LiveHome) -> None:
    """Without `aver.db-wal` nothing that was committed is lost, before or after."""
    before = live.run_text("true")
    live.settle([before])
    waiting = live.run_text(NOTE_AND_WAIT)
    live.wait_running(waiting)
    remove(live, "aver.db-wal", "aver.db-shm")
    after = live.run_text("true")
    (live.folder / "go").touch()
    live.settle([waiting, after])
    live.kill_coordinator()
    assert [live.job(run).state for run in (before, waiting, after)] == [State.COMPLETED] * 3
    live.assert_store_is_whole()


def test_folders_removed(live: LiveHome) -> None:
    """A cleaner takes empty folders too: they are made again."""
    live.settle([live.run_text("true")])
    wait_for(lambda: not any(live.home.witnesses.iterdir()), "the idle witness has left", 20)
    with live.client():  # it stays
        for name in ("witness", "stdin"):
            (live.home.path / name).rmdir()
        run = live.run_text("true")
        live.settle([run])
    assert live.job(run).state is State.COMPLETED


@pytest.mark.parametrize("suffixes", [("sock",), ("sock", "log")], ids=" ".join)
@pytest.mark.parametrize("end", ["0", "3"])
def test_socket_of_a_witness_removed(live: LiveHome, suffixes: tuple[str, ...], end: str) -> None:
    """ "Could not reach" is not "gone": the job goes on, and its own record says how it ended."""
    run = live.run_text(f"{NOTE_AND_WAIT}; exit {end}")
    live.wait_running(run)
    live.kill_coordinator()
    for suffix in suffixes:
        live.of_witness(suffix).unlink()
    live.connect_again()
    other = live.run_text("true")
    live.settle([other])
    assert live.job(run).state is State.RUNNING
    live.kill_coordinator()  # and once more
    live.connect_again()
    (live.folder / "go").touch()
    live.settle([run])
    assert live.job(run).state is (State.COMPLETED if end == "0" else State.FAILED)
    assert live.job(run).verified
    assert sorted(live.keys_run().values()) == [1]
    live.assert_nothing_left()


def test_begun_without_socket_and_journal(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beginning is not in the store yet, and both files are gone: it is not run a second time."""
    monkeypatch.setenv("AVER_CRASH_AT", "heard")
    with contextlib.suppress(AverError):
        live.run_text(NOTE_AND_WAIT)
    wait_for(live.keys_run, "the job runs")
    wait_for(lambda: live.coordinator() is None, "the coordinator has crashed")
    monkeypatch.delenv("AVER_CRASH_AT")
    live.of_witness("sock").unlink()
    live.of_witness("log").unlink()
    live.connect_again()
    live.wait_running(1)
    (live.folder / "go").touch()
    live.settle([1])
    assert live.job(1).state is State.COMPLETED
    assert sorted(live.keys_run().values()) == [1]


def test_cancel_without_a_socket(live: LiveHome) -> None:
    """A witness that can't be reached is reached by signals: its job can be cancelled."""
    run = live.run_text(NOTE_AND_WAIT)
    live.wait_running(run)
    live.kill_coordinator()
    live.of_witness("sock").unlink()
    live.connect_again()
    with live.client() as client:
        client.call("cancel", ids=[run], by="tester")
    live.settle([run])
    assert live.job(run).state is State.CANCELLED


def test_killed_witness_without_a_socket(live: LiveHome) -> None:
    """A witness that is gone is gone: UNVERIFIED, and nothing of its job is left."""
    run = live.run_text(NOTE_AND_WAIT)
    live.wait_running(run)
    witness = live.witness_of(run)
    live.kill_coordinator()
    live.of_witness("sock").unlink()
    live.connect_again()
    os.kill(witness, signal.SIGKILL)
    live.settle([run])
    assert live.job(run).state is State.UNVERIFIED
    live.assert_nothing_left()
