"""A submission whose answer is lost: the client finds out, and says submitted or not submitted, never perhaps."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from aver.client.submit import look_up
from aver.errors import UnreachableError
from aver.home import read_boot_id
from live_home import LiveHome, wait_for

RECORDED = 'echo "$AVER_KEY" >> "$RAN"'
WAITS = f"{RECORDED}; until [ -e go ]; do sleep 0.05; done"
SCRIPT = f"#!/bin/sh\n{RECORDED}\n"


def ask(live: LiveHome, command: str, point: str) -> subprocess.CompletedProcess[str]:
    """Submit a job with coordinators each of which dies at the point."""
    words = [sys.executable, "-m", "aver", "submit", "--", "sh", "-c", RECORDED]
    if command == "sbatch":
        (live.folder / "script").write_text(SCRIPT)
        words = [os.fspath(live.home.path / "bin" / "sbatch"), "script"]
        live.connect_again()  # makes the command
        assert live.kill_coordinator()
    environment = {**os.environ, "AVER_HOME": str(live.home.path), "AVER_CRASH_AT": point, "RAN": str(live.ran)}
    return subprocess.run(
        words, cwd=live.folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


def numbers(live: LiveHome) -> list[int]:
    with live.reader() as reader:
        return [run.id for run in reader.runs()]


@pytest.mark.parametrize("command", ["submit", "sbatch"])
@pytest.mark.parametrize("point", ["submit-files-written", "before-commit"])
def test_a_submission_that_was_not_durable_is_not_submitted(live: LiveHome, command: str, point: str) -> None:
    """Every coordinator was killed before its commit: there is nothing that could still take the submission."""
    done = ask(live, command, point)
    assert done.returncode == (69 if command == "submit" else 1)
    assert "not submitted: " in done.stderr
    live.connect_again()
    assert numbers(live) == []
    assert live.keys_run() == {}


@pytest.mark.parametrize("command", ["submit", "sbatch"])
@pytest.mark.parametrize("point", ["committed", "acted"])
def test_a_submission_that_was_durable_is_submitted_once(live: LiveHome, command: str, point: str) -> None:
    """The reply was lost with each coordinator; the run has its number all the same, and runs once."""
    done = ask(live, command, point)
    assert (done.returncode, done.stdout) == (0, "1\n" if command == "submit" else "Submitted batch job 1\n")
    live.connect_again()
    live.settle([1])
    assert numbers(live) == [1]
    assert list(live.keys_run().values()) == [1]


def test_who_waits_learns_that_it_was_submitted(live: LiveHome) -> None:
    """Whoever submits again runs the job twice. Python waits on, with the next coordinator."""
    environment = {**os.environ, "AVER_HOME": str(live.home.path), "RAN": str(live.ran)}
    words = [sys.executable, "-m", "aver", "run", "--", "sh", "-c", WAITS]
    process = subprocess.Popen(words, cwd=live.folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(live.keys_run, "its start")
        live.wait_running(1)
        assert live.kill_coordinator()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 69
    assert said.startswith("aver: job 1 is submitted, but can't be waited for: the coordinator ended")
    (live.folder / "go").touch()
    live.connect_again()
    live.settle([1])
    assert list(live.keys_run().values()) == [1]


def test_a_coordinator_that_lives_may_still_take_it(live: LiveHome) -> None:
    """It has not answered in time: the key makes a second try harmless."""
    said = "it may still take the submission: repeat it with --key k, it runs once"
    with live.client(), pytest.raises(UnreachableError, match=said):
        look_up(live.home, "k", OSError("no answer"))


def test_a_coordinator_that_nobody_has_waited_for_is_dead(live: LiveHome) -> None:
    """Its parent, the first process of a container, may never do that."""
    live.home.prepare()
    with subprocess.Popen(["true"]) as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        live.home.lock.write_text(json.dumps({"host": "here", "boot": read_boot_id(), "pid": zombie.pid}))
        assert not live.home.has_coordinator()
        with pytest.raises(UnreachableError, match="not submitted: no answer"):
            look_up(live.home, "k", OSError("no answer"))


def test_without_descriptors_of_processes_the_dead_are_dead(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox may refuse pidfd_open: a coordinator that is gone is still known to be gone."""

    def refused(pid: int, flags: int = 0) -> int:
        raise PermissionError(1, "Operation not permitted")

    live.connect_again()
    monkeypatch.setattr(os, "pidfd_open", refused)
    assert live.home.has_coordinator()
    assert live.kill_coordinator()
    wait_for(lambda: not live.home.has_coordinator(), "the coordinator is known to be gone")
