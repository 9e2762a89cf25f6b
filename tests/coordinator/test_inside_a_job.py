"""A coordinator that a job's own command starts is none of the job's processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from live_home import LiveHome, wait_for

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
    live = LiveHome(aver_home, tmp_path)
    submitted = run_aver(aver_home, tmp_path, "submit", *options, "--", "sh", "-c", script)
    job = int(submitted.stdout)
    wait_for(lambda: (tmp_path / "ready").exists(), "the job runs")
    assert live.kill_coordinator()
    (tmp_path / "go").touch()

    def ended(number: int) -> str | None:
        with live.reader() as reader:
            row = reader.job(number)
        return f"{row.state} {row.exit}" if row is not None and row.state.is_settled else None

    assert wait_for(lambda: ended(job), "the job's verdict") == "FAILED 3:0"
    second = live.coordinator()
    assert second is not None
    inner = int((tmp_path / "number").read_text())
    assert wait_for(lambda: ended(inner), "the inner job's verdict") == "COMPLETED 0:0"
    assert live.coordinator() == second
