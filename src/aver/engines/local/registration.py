"""This machine's own engine, as it is registered."""

from __future__ import annotations

import os

from aver.engines.api import Capabilities, Engine, Registration, Site


def _make(site: Site) -> Engine:
    from aver.engines.local.capabilities import find_cgroup
    from aver.engines.local.engine import LocalEngine
    from aver.engines.local.orders import RLIMITS, Bounds
    from aver.engines.local.slot import Launch
    from aver.launch import coordinator_environment, restart_command
    from aver.witness import binary

    home = os.fspath(site.home.path)
    command = restart_command(home)
    launch = Launch((home, *command), coordinator_environment()) if command else Launch()
    config = site.config
    bounds = Bounds(config.max_processes, RLIMITS[config.memory_rlimit])
    return LocalEngine(
        site.home.witnesses, binary(), site.totals, find_cgroup()[0], config.hide_gpus, launch, bounds
    )  # fmt: skip


ENGINE = Registration("local", Capabilities(), _make, lambda site: True)
