"""A store that is damaged: everybody names the file and what to do, nobody shows a traceback, nothing is lost by it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from live_home import DEADLINE_S, LiveHome, shell_job, wait_for

Typed = Callable[..., subprocess.CompletedProcess[bytes]]
PYTHON = "import aver; flow = aver.Flow('f'); flow.job('a', ['true']); flow.submit()"
READERS = ("jobs", "status", "stop")
SLURM = ("squeue", "sacct", "sbatch --wrap true", "scontrol show job 1", "srun true", "scancel 1")


@pytest.fixture
def past(live: LiveHome) -> LiveHome:
    """A home in which three jobs were run, and whose coordinator has left."""
    live.settle([live.submit(shell_job(f"job{number}", "exit 3")) for number in range(3)])
    live.wait_until_gone()
    wait_for(lambda: not live.home.path.joinpath("aver.db-wal").exists(), "a log that is home")
    return live


def damage_head(live: LiveHome) -> None:
    with live.home.database.open("r+b") as file:
        file.write(b"?" * 100)


def damage_pages(live: LiveHome) -> None:
    with live.home.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"?" * (live.home.database.stat().st_size - 4096))


@pytest.mark.parametrize("damage", [damage_head, damage_pages])
def test_everybody_says_the_same(past: LiveHome, typed: Typed, damage: Callable[[LiveHome], None]) -> None:
    """One sentence with the file and the remedy, from those who read and those who submit."""
    damage(past)
    before = past.home.database.read_bytes()
    python = [sys.executable, "-c", PYTHON]
    said = {words: typed(*words.split()) for words in (*READERS, "submit -- true")}
    for words in SLURM:
        command = [f"{past.home.bin}/{words.split()[0]}", *words.split()[1:]]
        said[words] = subprocess.run(command, cwd=past.folder, capture_output=True, timeout=DEADLINE_S, check=False)
    for words, done in said.items():
        assert done.returncode not in (0, 70), words
        assert done.stderr.count(b"\n") == 1, (words, done.stderr)
    said["python"] = subprocess.run(python, cwd=past.folder, capture_output=True, timeout=DEADLINE_S, check=False)
    assert b"AverError" in said["python"].stderr or b"CantWriteError" in said["python"].stderr
    for words, done in said.items():
        assert os.fsencode(past.home.database) in done.stderr, (words, done.stderr)
        assert b".recover" in done.stderr, words
    doctor = typed("doctor")
    assert doctor.returncode == 1
    assert b".recover" in doctor.stdout.replace(b"\n", b" ")
    assert b"Traceback" not in past.home.log.read_bytes()
    assert past.home.database.read_bytes() == before, "nobody has touched it"


def test_a_coordinator_leaves_a_store_that_is_damaged_under_it(live: LiveHome) -> None:
    """Without a traceback; its lock is empty, so nobody starts it again and again."""
    live.settle([live.submit(shell_job("job", "true"))])
    pid = live.coordinator()
    assert pid is not None
    for path in live.home.path.glob("aver.db-*"):
        path.unlink()
    live.home.database.write_bytes(b"?" * 8192)
    os.kill(pid, signal.SIGTERM)
    live.wait_until_gone()
    assert b"Traceback" not in live.home.log.read_bytes()
    assert live.home.lock.read_bytes() == b""
