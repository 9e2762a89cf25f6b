"""A coordinator that a job's own command starts is none of the job's processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aver.home import Home
from aver.store.reader import Reader
from conftest import coordinator_pid, wait_until

AVER = f"{sys.executable} -m aver"


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
    wait_until(lambda: (tmp_path / "ready").exists())
    first = coordinator_pid(aver_home)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: coordinator_pid(aver_home) != first)
    (tmp_path / "go").touch()
    home = Home(aver_home)

    def state_of(number: int) -> str | None:
        reader = Reader.open(home.database)
        assert reader is not None
        with reader:
            row = reader.job(number)
            return None if row is None else f"{row.state} {row.exit}"

    wait_until(lambda: state_of(job) == "FAILED 3:0")
    second = coordinator_pid(aver_home)
    assert second is not None
    inner = int((tmp_path / "number").read_text())
    wait_until(lambda: state_of(inner) == "COMPLETED 0:0")
    assert coordinator_pid(aver_home) == second
