"""What is kept here of a cluster's host."""

from __future__ import annotations

import stat
from pathlib import Path

from aver.config import Config
from aver.engines.slurm.remote.cluster import host_of
from aver.engines.slurm.remote.ssh import Ssh
from aver.home import Home


def test_a_home_that_begins_with_a_host_is_a_home(tmp_path: Path) -> None:
    """`aver connect` may be the first command of all: what it leaves is private, and the next one works there."""
    home = Home(tmp_path / "state" / "aver")
    host_of(home, Config(), Ssh("login"), 1.0)
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    home.prepare()
