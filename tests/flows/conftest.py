"""A lab of its own for every test of flows."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from flow_lab import Lab


@pytest.fixture
def lab(aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """An empty home, and a folder to work in. Jobs that ignore TERM get KILL after one second; four may run at once."""
    folder = tmp_path / "here"
    folder.mkdir()
    config = tmp_path / "config.toml"
    config.write_text("kill_wait = 1\ncpus = 4\n")
    monkeypatch.setenv("AVER_CONFIG", str(config))
    monkeypatch.delenv("AVER_CRASH_AT", raising=False)

    def kill() -> None:
        try:
            pid = json.loads((aver_home / "lock").read_bytes())["pid"]
            if os.fsencode(aver_home) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # there is none at the moment

    return Lab(folder, aver_home, kill)
