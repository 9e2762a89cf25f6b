"""A home whose coordinator runs nine jobs at a time and leaves soon, with a folder for its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live_home import LiveHome


@pytest.fixture
def live(aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveHome]:
    config = tmp_path / "config.toml"
    config.write_text("cpus = 10\nkill_wait = 2\nidle_exit = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(config))
    monkeypatch.delenv("AVER_CRASH_AT", raising=False)
    folder = tmp_path / "jobs"
    folder.mkdir()
    live = LiveHome(aver_home, folder)
    yield live
    live.end_everything()
