"""The engines of a coordinator as one: each is made when somebody needs it, or when it has attempts from before."""

from __future__ import annotations

import select
from collections.abc import Callable, Collection, Sequence
from typing import cast

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
    Registration,
    Rejected,
    Site,
    SubmitReply,
)

FindEngine = Callable[[str], Registration | None]


class Engines:
    """Used by the loop. An engine that nobody registered takes no order, and can't be asked."""

    def __init__(self, site: Site, known: Sequence[Registration], find: FindEngine, poller: select.epoll) -> None:
        self._site = site
        self._known = known
        self._find = find
        self._poller = poller
        self._made: dict[str, Engine] = {}
        self._allocators: list[Allocator] = []
        self._descriptors: set[int] = set()
        self._wakes = True

    def attach(self) -> None:
        for registration in self._known:
            if registration.holds_attempts(self._site):
                self._make(registration)

    def _of(self, name: str) -> Engine | None:
        found = self._made.get(name)
        if found is None and (registration := self._find(name)) is not None:
            found = self._make(registration)
        return found

    def _make(self, registration: Registration) -> Engine:
        engine = registration.make(self._site)
        engine.attach()
        self._made[registration.name] = engine
        if registration.capabilities.uses_allocations:
            self._allocators.append(cast(Allocator, engine))
        self._descriptors.add(engine.fileno())
        self._poller.register(engine.fileno(), select.EPOLLIN if self._wakes else 0)
        return engine

    def wake_loop(self, wakes: bool) -> None:
        """Whether the loop is woken by what the engines hear: not while nothing can be made of it."""
        if wakes is not self._wakes:
            self._wakes = wakes
            for descriptor in self._descriptors:
                self._poller.modify(descriptor, select.EPOLLIN if wakes else 0)

    def has(self, fd: int) -> bool:
        """Whether the loop is woken by an engine: they are heard in every turn."""
        return fd in self._descriptors

    def allocate(self, name: str, asks: Sequence[AllocationAsk]) -> None:
        engine = self._of(name) if asks else None
        if engine is not None:
            cast(Allocator, engine).allocate(asks)

    def release(self, runs: Sequence[int]) -> None:
        """Release what engines hold for runs that are settled."""
        for engine in self._allocators if runs else ():
            engine.release(runs)

    def is_releasing(self) -> bool:
        return any(engine.is_releasing() for engine in self._allocators)

    def keep_only(self, runs: Collection[int]) -> None:
        """After a restart: runs that were settled before it, and not released."""
        for engine in self._allocators:
            engine.release([run for run in engine.open_runs() if run not in runs])

    def submit(self, orders: Sequence[Order], name: str) -> list[SubmitReply]:
        if not orders:
            return []
        engine = self._of(name)
        if engine is None:
            return [Rejected(order.key, _absent(name)) for order in orders]
        return engine.submit(orders)

    def observe(self, keys: Sequence[str], name: str) -> list[ObserveReply]:
        if not keys:
            return []
        registration = self._find(name)
        if registration is None:
            return [CouldNotAsk(key, _absent(name)) for key in keys]
        if name not in self._made and registration.holds_attempts(self._site) is False:
            return [NotListed(key) for key in keys]  # nothing was ever handed over
        return (self._made.get(name) or self._make(registration)).observe(keys)

    def control(self, controls: Sequence[Control], engine_of: Callable[[str], str | None]) -> None:
        by_name: dict[str, list[Control]] = {}
        for control in controls:
            name = engine_of(control.key)
            if name is not None:
                by_name.setdefault(name, []).append(control)
        for name, some in by_name.items():
            engine = self._of(name)
            if engine is not None:
                engine.control(some)

    def heard(self) -> list[Heard]:
        return [one for engine in self._made.values() for one in engine.heard()]

    def adopt(self, adoptions: Sequence[tuple[str, str]], engine_of: Callable[[str], str | None]) -> None:
        for before, key in adoptions:
            name = engine_of(key)
            engine = None if name is None else self._of(name)
            if engine is not None:
                engine.adopt(before, key)

    def settle(self, keys: Sequence[str]) -> None:
        for engine in self._made.values():
            engine.settle(keys)

    def tidy(self) -> float | None:
        """Let go of what is idle; in how many seconds to call again, None: after the next evidence."""
        again = [engine.tidy() for engine in self._made.values()]
        return min((seconds for seconds in again if seconds is not None), default=None)

    def close(self) -> None:
        for engine in self._made.values():
            engine.close()


def _absent(name: str) -> str:
    return f"there is no engine {name!r}: name it under [engines] in the settings"
