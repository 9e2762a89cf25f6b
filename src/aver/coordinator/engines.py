"""The engines of a coordinator: this machine's, and a cluster's as soon as somebody needs it."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence

from aver.coordinator.packers import SLURM
from aver.engines.api import Control, Engine, Heard, NotListed, ObserveReply, Order, SubmitReply
from aver.engines.local.engine import LocalEngine


class Engines:
    """Used by the loop as one. `is_cluster_known`: whether a cluster may have something of ours."""

    def __init__(
        self, local: LocalEngine, make_cluster: Callable[[], Engine], is_cluster_known: Callable[[], bool],
        poller: select.epoll,
    ) -> None:  # fmt: skip
        self.local = local
        self._make_cluster = make_cluster
        self._is_cluster_known = is_cluster_known
        self._poller = poller
        self._cluster: Engine | None = None

    def attach(self) -> None:
        self.local.attach()
        if self._is_cluster_known():
            self.of(SLURM)

    def of(self, name: str) -> Engine:
        if name != SLURM:
            return self.local
        if self._cluster is None:
            self._cluster = self._make_cluster()
            self._cluster.attach()
            self._poller.register(self._cluster.fileno(), select.EPOLLIN)
        return self._cluster

    def has(self, fd: int) -> bool:
        """Whether the loop is woken by an engine: they are heard in every turn."""
        return fd == self.local.fileno() or (self._cluster is not None and fd == self._cluster.fileno())

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
        heard = self.local.heard()
        return heard + self._cluster.heard() if self._cluster is not None else heard

    def adopt(self, adoptions: Sequence[tuple[str, str]]) -> None:
        for before, key in adoptions:
            self.of(SLURM).adopt(before, key)

    def settle(self, keys: Sequence[str]) -> None:
        self.local.settle(keys)
        if self._cluster is not None:
            self._cluster.settle(keys)

    def close(self) -> None:
        self.local.close()
        if self._cluster is not None:
            self._cluster.close()
