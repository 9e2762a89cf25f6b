"""A coordinator that a job's own command starts is none of the job's processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aver.coordinator.lock import read_holder
from aver.home import Home
from aver.store.reader import Reader
from live_home import wait_for

AVER = f"{sys.executable} -m aver"


def holder(home: Path) -> int | None:
    """The coordinator's pid, as the lock names it."""
    pid = read_holder(home / "lock").get("pid")
    return pid if isinstance(pid, int) and Path(f"/proc/{pid}").exists() else None


def run_aver(home: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "AVER_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-m", "aver", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--mem", "500M")])
def test_it_outlives_the_job(aver_home: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """The coordinator is killed while a job runs; the job's own `aver submit` starts the next, which goes on when the
    job has ended, and so do its jobs. The job's verdict is right."""
    script = f"touch ready; until [ -e go ]; do sleep 0.05; done; {AVER} submit -- sleep 2 > number; exit 3"
    submitted = run_aver(aver_home, tmp_path, "submit", *options, "--", "sh", "-c", script)
    job = int(submitted.stdout)
    wait_for(lambda: (tmp_path / "ready").exists(), "what the test waits for")
    first = holder(aver_home)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: holder(aver_home) != first, "what the test waits for")
    (tmp_path / "go").touch()
    home = Home(aver_home)

    def state_of(number: int) -> str | None:
        reader = Reader.open(home.database)
        assert reader is not None
        with reader:
            row = reader.job(number)
            return None if row is None else f"{row.state} {row.exit}"

    wait_for(lambda: state_of(job) == "FAILED 3:0", "what the test waits for")
    second = holder(aver_home)
    assert second is not None
    inner = int((tmp_path / "number").read_text())
    wait_for(lambda: state_of(inner) == "COMPLETED 0:0", "what the test waits for")
    assert holder(aver_home) == second
