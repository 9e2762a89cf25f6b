"""This machine's own engine, as it is registered."""

from __future__ import annotations

from aver.engines.api import Capabilities, Engine, Registration, Site


def _make(site: Site) -> Engine:
    from aver.engines.local.capabilities import find_cgroup
    from aver.engines.local.engine import LocalEngine
    from aver.witness import binary

    return LocalEngine(site.home.witnesses, binary(), site.totals, find_cgroup()[0], site.config.hide_gpus)


ENGINE = Registration("local", Capabilities(), _make, lambda site: True)
