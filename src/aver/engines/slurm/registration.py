"""The two engines of Slurm, as they are registered.

`slurm` hands each attempt to sbatch, of this machine or of a host behind ssh; `allocation` makes attempts steps of what
their run was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aver.config import load_config
from aver.engines.api import UNLIMITED, Allocator, Capabilities, Engine, Refusals, Registration, Site
from aver.home import Home
from aver.model.record import replace

REFUSALS = Refusals(
    hold="handed to Slurm: there scontrol hold holds it",
    release="held by Slurm: there scontrol release lets it go",
    suspend="on Slurm: only an operator of the cluster can do that (scontrol suspend, scontrol resume)",
    limit="the job is Slurm's: its limit can be changed there",
    step_signal="is Slurm's: its own scancel reaches it",
)


def _make(site: Site) -> Engine:
    from aver.engines.slurm.cluster import make_engine
    from aver.engines.slurm.cluster_set import Clusters
    from aver.engines.slurm.remote.cluster import known_hosts, make_host_engine

    def make(host: str) -> Engine:
        return make_host_engine(site.home, site.config, host) if host else make_engine(site.home, site.config)

    here = [""] if any((site.home.path / "slurm" / "batches").glob("*.json")) else []
    return Clusters(make, [*here, *known_hosts(site.home)], UNLIMITED)


def _holds_attempts(site: Site) -> bool:
    slurm = site.home.path / "slurm"
    return any(slurm.glob("batches/*.json")) or any(slurm.glob("hosts/*/batches/*.json"))


def _check_home(home: Home) -> None:
    from aver.engines.slurm.cluster import check_shared_folder

    check_shared_folder(home)


def _note_environment(home: Home, env: Sequence[str]) -> None:
    from aver.engines.slurm.cluster import note_site

    note_site(home, env)


def _shared_folder(home: Home) -> Path:
    from aver.engines.slurm.cluster import folder

    return folder(home, load_config())


ENGINE = Registration(
    "slurm",
    Capabilities(
        has_queue=True, has_scheduler=True, outlives_machine=True, tells_steps=True, signals_steps=True,
        may_requeue=True, may_lose_nodes=True, may_tell_late=True, is_shared=True, needs_script_text=True,
        takes_sbatch_options=True, refusals=REFUSALS,
    ),
    _make,
    _holds_attempts,
    _check_home,
    _note_environment,
    _shared_folder,
)  # fmt: skip


def _make_allocator(site: Site) -> Engine:
    from aver.engines.slurm.cluster import make_allocator
    from aver.engines.slurm.cluster_set import AllocationClusters
    from aver.engines.slurm.remote.cluster import allocation_hosts, make_host_allocator

    def make(host: str) -> Allocator:
        if host:
            return make_host_allocator(site.home, site.config, host, site.key)
        return make_allocator(site.home, site.config, site.key)

    here = [""] if (site.home.path / "slurm" / "allocations").exists() else []
    return AllocationClusters(make, [*here, *allocation_hosts(site.home)], UNLIMITED)


def _holds_steps(site: Site) -> bool | None:
    """None where no folder of allocations is in use: the engine itself sees whether one is missing."""
    if not (site.home.path / "slurm").is_dir():
        return False
    from aver.engines.slurm.allocation.folder import folders_in
    from aver.engines.slurm.cluster import folder
    from aver.engines.slurm.remote.cluster import allocation_hosts

    is_here = any(one.is_in_use for one in folders_in(folder(site.home, site.config) / "alloc"))
    return is_here or bool(allocation_hosts(site.home)) or None


ALLOCATION_ENGINE = Registration(
    "allocation",
    replace(ENGINE.capabilities, takes_sbatch_options=False, uses_allocations=True, may_requeue=False),
    _make_allocator,
    _holds_steps,
    _check_home,
    _note_environment,
    _shared_folder,
)
