"""The clusters of a home as one engine: that of this machine's own Slurm commands, and one for each host behind ssh.

An order says which host it is for; whatever comes later goes to the one that knows the attempt.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from aver.engines.api import (
    AllocationAsk,
    Allocator,
    Control,
    CouldNotAsk,
    Engine,
    Heard,
    NotListed,
    ObserveReply,
    Order,
    Rejected,
    Seen,
    SubmitReply,
    Totals,
)
from aver.errors import AverError

E = TypeVar("E", bound=Engine)


class Clusters(Generic[E]):
    """An `Engine`. `known`: the hosts that may have something of ours; "" is this machine."""

    name = "slurm"

    def __init__(self, make: Callable[[str], E], known: Sequence[str], totals: Totals) -> None:
        self._make = make
        self._known = known
        self.totals = totals
        self._engines: dict[str, E] = {}
        self._poller = select.epoll()

    def fileno(self) -> int:
        return self._poller.fileno()

    def attach(self) -> None:
        for host in self._known:
            self._of(host)

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        replies: list[SubmitReply] = []
        for host in dict.fromkeys(order.host for order in orders):
            mine = [order for order in orders if order.host == host]
            try:
                replies += self._of(host).submit(mine)
            except AverError as error:  # its folders can't be made: that is no reason to end what runs elsewhere
                replies += [Rejected(order.key, str(error)) for order in mine]
        return replies

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        return [self._seen(key) for key in keys]

    def control(self, controls: Sequence[Control]) -> None:
        for engine in self._engines.values():
            mine = [one for one in controls if _knows(engine, one.key)]
            if mine:
                engine.control(mine)

    def adopt(self, before: str, key: str) -> None:
        for engine in self._engines.values():
            if _knows(engine, before):
                engine.adopt(before, key)

    def heard(self) -> list[Heard]:
        return [one for engine in self._engines.values() for one in engine.heard()]

    def settle(self, keys: Sequence[str]) -> None:
        for engine in self._engines.values():
            engine.settle(keys)

    def tidy(self) -> float | None:
        return None

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()
        self._poller.close()

    def _of(self, host: str) -> E:
        if host not in self._engines:
            engine = self._make(host)
            engine.attach()
            self._engines[host] = engine
            self._poller.register(engine.fileno(), select.EPOLLIN)
        return self._engines[host]

    def _seen(self, key: str) -> ObserveReply:
        replies = [engine.observe([key])[0] for engine in self._engines.values()]
        for reply in replies:
            if isinstance(reply, Seen):
                return reply
        return next((reply for reply in replies if isinstance(reply, CouldNotAsk)), None) or NotListed(key)


class AllocationClusters(Clusters[Allocator]):
    """An `Allocator`."""

    name = "allocation"

    def allocate(self, asks: Sequence[AllocationAsk]) -> None:
        for host in dict.fromkeys(ask.host for ask in asks):
            self._of(host).allocate([ask for ask in asks if ask.host == host])

    def release(self, runs: Sequence[int]) -> None:
        for engine in self._engines.values():
            engine.release(runs)

    def open_runs(self) -> list[int]:
        return [run for engine in self._engines.values() for run in engine.open_runs()]

    def is_releasing(self) -> bool:
        return any(engine.is_releasing() for engine in self._engines.values())


def _knows(engine: Engine, key: str) -> bool:
    return isinstance(engine.observe([key])[0], Seen)
