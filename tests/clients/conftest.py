"""Fixtures: a desk with the clients on PATH."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients_desk import CLIENTS, Desk

SETTINGS = 'cpus = 4\nkill_wait = "2s"\n'


@pytest.fixture
def desk(aver_home: Path, tmp_path: Path) -> Desk:
    """An empty folder and an empty home, with room for four jobs on any machine and a short wait before a kill."""
    if not (CLIENTS / "installed").exists():
        pytest.fail(f"there are no clients in {CLIENTS}: run scripts/clients, or scripts/test, which does")
    aver_home.mkdir(mode=0o700, exist_ok=True)
    (aver_home / "settings.toml").write_text(SETTINGS)
    return Desk(tmp_path, aver_home)
