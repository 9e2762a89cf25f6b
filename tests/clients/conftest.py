"""Fixtures: a desk with the clients on PATH."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients_desk import CLIENTS, Desk

from aver.model.slurm_names import NEWEST, RELEASES

SETTINGS = 'cpus = 4\nkill_wait = "2s"\n[slurm]\nversion = "{release}"\n'


@pytest.fixture(params=[min(RELEASES), NEWEST])
def desk(request: pytest.FixtureRequest, aver_home: Path, tmp_path: Path) -> Desk:
    """An empty folder and an empty home, with room for four jobs on any machine and a short wait before a kill.

    Every client is run with the commands of the oldest and of the newest release of Slurm.
    """
    if not (CLIENTS / "installed").exists():
        pytest.fail(f"there are no clients in {CLIENTS}: run scripts/clients, or scripts/test, which does")
    aver_home.mkdir(mode=0o700, exist_ok=True)
    (aver_home / "settings.toml").write_text(SETTINGS.format(release=request.param))
    return Desk(tmp_path, aver_home)
