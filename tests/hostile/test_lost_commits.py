"""A store that has lost commits: nothing that ran is forgotten in silence, run twice or given a namesake."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable

import pytest

from aver.model.states import State
from live_home import LiveHome, is_alive, shell_job, wait_for

Typed = Callable[..., subprocess.CompletedProcess[bytes]]
WAIT_FOR = 'echo $AVER_KEY >> "$RAN"; while [ ! -e {name} ]; do sleep 0.05; done; exit {code}'


def stop(live: LiveHome) -> None:
    """The coordinator leaves, and all that was committed is in `aver.db`."""
    live.kill_coordinator(signal.SIGTERM)
    live.wait_until_gone()


def lose_log(live: LiveHome) -> None:
    """The coordinator crashes, and somebody removes what looks like rubbish of it."""
    live.kill_coordinator()
    for name in ("aver.db-wal", "aver.db-shm"):
        (live.home.path / name).unlink(missing_ok=True)


def said_by(typed: Typed) -> tuple[str, str]:
    """What `aver status` and `aver doctor` say."""
    status, doctor = typed("status"), typed("doctor", "--json")
    store = next(one for one in json.loads(doctor.stdout)["checks"] if one["name"] == "store")
    return status.stdout.decode(), f"{store['status']} {store['fact']}"


def test_a_removed_log_is_brought_home_at_once(live: LiveHome) -> None:
    """Not with the next commit: the coordinator may die before that."""
    run = live.run_text(WAIT_FOR.format(name="go", code=3))
    live.wait_running(run)
    log = live.home.path / "aver.db-wal"
    log.unlink()
    wait_for(log.exists, "a new log")
    live.kill_coordinator()
    live.connect_again()
    assert live.job(run).state is State.RUNNING
    (live.folder / "go").touch()
    live.settle([run])
    assert live.job(run).state is State.FAILED
    assert sorted(live.keys_run().values()) == [1]
    assert not (live.home.path / "lost").exists()
    live.assert_store_is_whole()


def test_a_job_that_the_store_has_lost(live: LiveHome, typed: Typed) -> None:
    """It runs on, its number is not another's, its end is in the log, and people are told."""
    live.settle([live.run_text("true")])
    stop(live)
    lost = live.run_text(WAIT_FOR.format(name="go-lost", code=3))
    live.wait_running(lost)
    witness = live.witness_of(lost)
    lose_log(live)
    live.connect_again()
    new = live.run_text(WAIT_FOR.format(name="go-new", code=0))
    assert new > lost
    live.wait_running(new)
    status, doctor = said_by(typed)
    assert f"job {lost} is not in the store" in status
    assert doctor.startswith("limited")
    assert f"job {lost} runs under witness {witness}" in doctor
    assert "which were committed" in live.home.log.read_text()
    assert is_alive(witness)
    (live.folder / "go-lost").touch()
    wait_for(lambda: not is_alive(witness), "the end of the lost job")
    wait_for(lambda: "not in the store has ended" in live.home.log.read_text(), "its end is logged")
    assert live.job(new).state is State.RUNNING
    (live.folder / "go-new").touch()
    live.settle([new])
    assert live.job(new).state is State.COMPLETED
    assert sorted(live.keys_run().values()) == [1, 1]
    assert re.search(
        rf'not in the store has ended: witness says .*"key":"[0-9a-f]+\.{lost}\.1\.', live.home.log.read_text()
    )
    (live.home.path / "lost").unlink()
    status, doctor = said_by(typed)
    assert "store" not in status
    assert doctor.startswith("ok")


def test_a_submission_that_the_store_has_lost(live: LiveHome, typed: Typed) -> None:
    """Nothing of it ran, so no witness knows it: the count of commits does."""
    live.settle([live.run_text("true")])
    stop(live)
    lost = live.submit(shell_job("held", "true", hold=True))
    lose_log(live)
    live.connect_again()
    assert "the store lacks events" in said_by(typed)[0]
    new = live.run_text("true")
    assert new > lost
    live.settle([new])
    lose_log(live)  # and again: what was lost before is not said anew
    live.connect_again()
    assert live.run_text("true") > new
    lines = (live.home.path / "lost").read_text().splitlines()
    assert len(lines) == len(set(lines))


def test_an_attempt_that_the_store_has_lost(live: LiveHome) -> None:
    """Its job is known and waits: it is the job's attempt, goes on, and is not run beside a second one."""
    run = live.submit(shell_job("held", WAIT_FOR.format(name="go", code=3), hold=True))
    stop(live)
    with live.client() as client:
        client.call("release", ids=[run], by="tester")
    live.wait_running(run)
    lose_log(live)
    live.connect_again()
    other = live.run_text("true")
    live.settle([other])
    live.wait_running(run)
    (live.folder / "go").touch()
    live.settle([run])
    assert (live.job(run).state, str(live.job(run).exit)) == (State.FAILED, "3:0")
    assert live.job(run).verified
    assert sorted(live.keys_run().values()) == [1]
    assert "its witness has it: taken up" in live.home.log.read_text()
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_an_end_that_the_store_has_lost(live: LiveHome) -> None:
    """The attempt ended while nobody was there, and its journal alone knows of it: that is its verdict."""
    run = live.submit(shell_job("held", WAIT_FOR.format(name="go", code=4), hold=True))
    stop(live)
    with live.client() as client:
        client.call("release", ids=[run], by="tester")
    live.wait_running(run)
    witness = live.witness_of(run)
    lose_log(live)
    (live.folder / "go").touch()
    wait_for(lambda: not is_alive(witness), "the end of the job")
    live.settle([run])
    assert (live.job(run).state, str(live.job(run).exit)) == (State.FAILED, "4:0")
    assert sorted(live.keys_run().values()) == [1]
    live.assert_store_is_whole()
    live.assert_nothing_left()


@pytest.mark.parametrize("count", [b"", b"\0" * 51, b"?" * 9999, b"00000000 %019d %019d\n" % (9, 9)], ids=len)
def test_a_count_of_commits_that_says_nothing(live: LiveHome, count: bytes) -> None:
    """Empty, zeros, rubbish, or another store's: nothing was lost, and the next one counts."""
    live.settle([live.run_text("true")])
    stop(live)
    (live.home.path / "committed").write_bytes(count)
    live.settle([live.run_text("true")])
    stop(live)
    assert not (live.home.path / "lost").exists()
    assert re.fullmatch(rb"[0-9a-f]{8} 0{10,}[1-9][0-9]* 0{18}3\n", (live.home.path / "committed").read_bytes())


def test_a_count_of_commits_beyond_all_stores(live: LiveHome) -> None:
    """Whoever wrote that into the file: it is not believed."""
    live.settle([live.run_text("true")])
    stop(live)
    home_id = (live.home.path / "committed").read_bytes()[:8]
    (live.home.path / "committed").write_bytes(home_id + b" 9999999999999999999 9999999999999999999\n")
    live.settle([live.run_text("true")])
    assert not (live.home.path / "lost").exists()


def test_an_older_copy_put_back(live: LiveHome, typed: Typed) -> None:
    """While no coordinator runs, with `cp`: it is said, and numbers go on above those that were given."""
    live.settle([live.run_text("true")])
    stop(live)
    shutil.copy(live.home.database, live.folder / "older")
    newest = live.run_text("true")
    live.settle([newest])
    stop(live)
    shutil.copy(live.folder / "older", live.home.database)
    assert live.run_text("true") == newest + 1
    assert "an older copy" in said_by(typed)[0]


@pytest.mark.parametrize("kind", ["fifo", "folder", "bytes"])
def test_a_file_of_losses_that_is_none(live: LiveHome, typed: Typed, kind: str) -> None:
    """Nobody waits for it or ends because of it."""
    live.settle([live.run_text("true")])
    lost = live.home.path / "lost"
    if kind == "fifo":
        os.mkfifo(lost)
    elif kind == "folder":
        lost.mkdir()
    else:
        lost.write_bytes(b"\x1b[31m\xff\n")
    for command in ("status", "doctor"):
        done = typed(command)
        assert done.returncode in (0, 1), done
        assert b"\x1b" not in done.stdout


def test_a_whole_store_that_is_gone(live: LiveHome, typed: Typed) -> None:
    """Nothing of it had reached `aver.db`: the next store is new, and says that another one was here."""
    ended = live.run_text("true")
    live.settle([ended])
    lost = live.run_text(WAIT_FOR.format(name="go-lost", code=3))
    live.wait_running(lost)
    witness = live.witness_of(lost)
    lose_log(live)
    for command in ("jobs", "show"):  # before anybody has looked what runs
        done = typed(command, *([str(lost)] if command == "show" else []))
        assert b"has lost events" in done.stderr, done
        assert b"nothing was submitted" not in done.stderr
    live.connect_again()
    assert live.run_text("true") > lost
    lines = (live.home.path / "lost").read_text()
    assert "the store that was here, with " in lines
    assert f"job {lost} is not in the store: its attempt " in lines
    assert b"has lost events: `aver status` says which" in typed("jobs").stderr
    (live.folder / "go-lost").touch()
    wait_for(lambda: not is_alive(witness), "the end of the lost job")
    wait_for(lambda: "has ended, its witness says 3:0" in (live.home.path / "lost").read_text(), "its end is said")
    assert list(live.keys_run().values()).count(1) == 1, "once"
    (live.home.path / "lost").unlink()
    assert b"lost" not in typed("jobs").stderr


@pytest.mark.parametrize("command", ["squeue", "sacct"])
def test_slurms_commands_say_what_the_store_has_lost(live: LiveHome, typed: Typed, command: str) -> None:
    """Who waits for a job by asking whether it is listed is not to take its absence for its end."""
    live.settle([live.run_text("true")])
    stop(live)
    lost = live.run_text(WAIT_FOR.format(name="go", code=0))
    live.wait_running(lost)
    lose_log(live)
    live.connect_again()
    tool = os.fspath(live.home.bin / command)
    done = subprocess.run([tool], env={**os.environ, "AVER_HOME": os.fspath(live.home.path)}, capture_output=True)
    assert b"aver: warning: the store of this home has lost events" in done.stderr, done
    (live.folder / "go").touch()
