"""The engines of a coordinator: this machine's, and a cluster's as soon as somebody needs it."""

from __future__ import annotations

import select
from collections.abc import Callable, Collection, Sequence

from aver.engines.api import (
    ALLOCATION,
    SLURM,
    AllocationAsk,
    Allocator,
    Control,
    Engine,
    Heard,
    NotListed,
    ObserveReply,
    Order,
    SubmitReply,
)
from aver.engines.local.engine import LocalEngine


class Engines:
    """Used by the loop as one. `is_cluster_known`: whether a cluster may have something of ours."""

    def __init__(
        self, local: LocalEngine, make_cluster: Callable[[], Engine], is_cluster_known: Callable[[], bool],
        poller: select.epoll, make_allocator: Callable[[], Allocator], has_allocations: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.local = local
        self._make_cluster = make_cluster
        self._is_cluster_known = is_cluster_known
        self._poller = poller
        self._cluster: Engine | None = None
        self._make_allocator = make_allocator
        self._has_allocations = has_allocations
        self._allocator: Allocator | None = None

    def attach(self) -> None:
        self.local.attach()
        if self._is_cluster_known():
            self.of(SLURM)
        if self._has_allocations():
            self.of(ALLOCATION)

    def of(self, name: str) -> Engine:
        if name == ALLOCATION:
            return self._allocating()
        if name != SLURM:
            return self.local
        if self._cluster is None:
            self._cluster = self._make_cluster()
            self._cluster.attach()
            self._poller.register(self._cluster.fileno(), select.EPOLLIN)
        return self._cluster

    def _allocating(self) -> Allocator:
        if self._allocator is None:
            self._allocator = self._make_allocator()
            self._allocator.attach()
            self._poller.register(self._allocator.fileno(), select.EPOLLIN)
        return self._allocator

    def _made(self) -> list[Engine]:
        return [one for one in (self.local, self._cluster, self._allocator) if one is not None]

    def has(self, fd: int) -> bool:
        """Whether the loop is woken by an engine: they are heard in every turn."""
        return any(fd == one.fileno() for one in self._made())

    def allocate(self, asks: Sequence[AllocationAsk]) -> None:
        if asks:
            self._allocating().allocate(asks)

    def release(self, runs: Sequence[int]) -> None:
        """These runs are settled."""
        if runs and self._allocator is not None:
            self._allocator.release(runs)

    def keep_only(self, runs: Collection[int]) -> None:
        """After a restart: runs that were settled before it, and not released."""
        if self._allocator is not None:
            self._allocator.release([run for run in self._allocator.open_runs() if run not in runs])

    def submit(self, orders: Sequence[Order], name: str) -> list[SubmitReply]:
        return self.of(name).submit(orders) if orders else []

    def observe(self, keys: Sequence[str], name: str) -> list[ObserveReply]:
        if name == SLURM and self._cluster is None and not self._is_cluster_known():
            return [NotListed(key) for key in keys]  # nothing was ever handed over
        return self.of(name).observe(keys) if keys else []

    def control(self, controls: Sequence[Control], engine_of: Callable[[str], str]) -> None:
        for engine in {engine_of(control.key) for control in controls}:
            self.of(engine).control([control for control in controls if engine_of(control.key) == engine])

    def heard(self) -> list[Heard]:
        return [one for engine in self._made() for one in engine.heard()]

    def adopt(self, adoptions: Sequence[tuple[str, str]]) -> None:
        for before, key in adoptions:
            self.of(SLURM).adopt(before, key)

    def settle(self, keys: Sequence[str]) -> None:
        for engine in self._made():
            engine.settle(keys)

    def close(self) -> None:
        for engine in self._made():
            engine.close()
