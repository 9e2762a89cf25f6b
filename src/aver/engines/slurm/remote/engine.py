"""A cluster's engine on a host that does not see this machine's files.

An order whose folders are not there yet is held back until they are; how a job ended is told when its files are back,
so that whoever sees a verdict finds the files: a dependent, a generated flow, a person. Neither is ever a job's
failure: a transfer is tried again for as long as it takes, said so, and a cancel ends the waiting. What is held is in
memory alone: after a restart the attempts are ordered again, and the cluster is asked again.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from aver.durable_files import write_file
from aver.engines.api import (
    AllocationAsk,
    Allocator,
    Control,
    Engine,
    Heard,
    ObserveReply,
    Order,
    Seen,
    SubmitReply,
    Sync,
    Totals,
    Unsure,
)
from aver.engines.slurm.remote.transfer import Outcome, Transfers
from aver.model.codec import parse
from aver.model.evidence import (
    AccountingSaid,
    CancelledBefore,
    Evidence,
    HeldBack,
    NeverSeen,
    NobodySaid,
    QueueSaid,
    WitnessRecord,
)

TRANSFER = "Transfer"
SOURCE = "rsync"
NO_FILES = "cancelled before its files were back"


class SyncedEngine:
    """An `Engine` around that of a host. `path`: which attempts have which folders, kept for a restart."""

    name: str
    totals: Totals

    def __init__(self, engine: Engine, transfers: Transfers, path: Path, log: Callable[[str], None]) -> None:
        self._engine = engine
        self._transfers = transfers
        self._path = path
        self._log = log
        self.name, self.totals = engine.name, engine.totals
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller = select.epoll()
        self._poller.register(self._wake_fd, select.EPOLLIN)
        self._poller.register(engine.fileno(), select.EPOLLIN)
        transfers.told = self._wake
        self._syncs: dict[str, Sync] = {}
        self._there: set[Sync] = set()
        self._orders: dict[Sync, list[Order]] = {}  # until their folders are there
        self._held: dict[str, list[Heard]] = {}  # until their folders are back
        self._back: set[str] = set()
        self._own: list[Heard] = []

    def _wake(self) -> None:
        os.eventfd_write(self._wake_fd, 1)

    def fileno(self) -> int:
        return self._poller.fileno()

    def attach(self) -> None:
        try:
            kept = parse(self._path.read_bytes())
            self._syncs = {str(key): _sync(words) for key, words in kept.items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._log(f"{self._path} can't be read: files of jobs that run are not brought back")
        self._engine.attach()

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        synced = [order for order in orders if order.sync is not None]
        for order in synced:
            assert order.sync is not None
            self._syncs[order.key] = order.sync
        if synced:
            self._keep()
        ready = [order for order in orders if order.sync is None or order.sync in self._there]
        replies = self._engine.submit(ready) if ready else []
        for order in synced:
            if order.sync is not None and order.sync not in self._there:
                self._orders.setdefault(order.sync, []).append(order)
                replies.append(Unsure(order.key, "its files are being brought to the host"))
        for sync, waiting in self._orders.items():
            self._transfers.want(sync, False, {order.key for order in waiting})
        return replies

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        waiting = {order.key for orders in self._orders.values() for order in orders}
        return [Seen(key) if key in waiting else self._engine.observe([key])[0] for key in keys]

    def control(self, controls: Sequence[Control]) -> None:
        now = time.time()
        for control in controls:
            if control.verb != "cancel":
                continue
            for orders in self._orders.values():
                for order in [one for one in orders if one.key == control.key]:
                    orders.remove(order)
                    taken_back = CancelledBefore(now, "a request", "its files were there")
                    text = "a request before its files were there"
                    self._own.append(Heard(control.key, "engine", text, taken_back))
            if control.key in self._held:
                self._log(f"{control.key}: {NO_FILES}")
                self._release([control.key])
        self._orders = {sync: orders for sync, orders in self._orders.items() if orders}
        if self._own:
            self._wake()
        self._engine.control(controls)

    def adopt(self, before: str, key: str) -> None:
        if before in self._syncs:
            self._syncs[key] = self._syncs[before]
            self._keep()
        self._engine.adopt(before, key)

    def heard(self) -> list[Heard]:
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            pass
        for outcome in self._transfers.outcomes():
            self._take(outcome)
        for one in self._engine.heard():
            sync = self._syncs.get(one.key)
            if sync is None or one.key in self._back or not _is_end(one.evidence):
                self._own.append(one)
                continue
            if one.key not in self._held:
                self._transfers.want(sync, True, {one.key})
            self._held.setdefault(one.key, []).append(one)
        found, self._own = self._own, []
        return found

    def settle(self, keys: Sequence[str]) -> None:
        mine = [key for key in keys if key in self._syncs]
        for key in mine:
            del self._syncs[key]
            self._held.pop(key, None)
            self._back.discard(key)
        if mine:
            self._keep()
        self._engine.settle(keys)

    def tidy(self) -> float | None:
        return self._engine.tidy()

    def close(self) -> None:
        self._transfers.close()
        self._engine.close()
        self._poller.close()

    def _take(self, outcome: Outcome) -> None:
        if outcome.trouble:
            self._log(outcome.trouble)
            held = HeldBack(time.time(), TRANSFER, outcome.trouble)
            self._own += [Heard(key, SOURCE, outcome.trouble, held) for key in sorted(outcome.keys)]
        elif outcome.is_back:
            self._release(outcome.keys)
        else:
            self._there.add(outcome.sync)
            orders = self._orders.pop(outcome.sync, [])
            if orders:
                self._engine.submit(orders)

    def _release(self, keys: Sequence[str] | frozenset[str]) -> None:
        for key in sorted(keys):
            self._back.add(key)
            self._own += self._held.pop(key, [])

    def _keep(self) -> None:
        words = {key: [one.run, one.round, one.folders, one.excludes] for key, one in self._syncs.items()}
        try:
            write_file(self._path, json.dumps(words).encode())
        except OSError as error:
            self._log(f"can't write {self._path}: {error.strerror}")


class SyncedAllocator(SyncedEngine):
    """The same around an `Allocator`."""

    def __init__(self, engine: Allocator, transfers: Transfers, path: Path, log: Callable[[str], None]) -> None:
        super().__init__(engine, transfers, path, log)
        self._allocator = engine

    def allocate(self, asks: Sequence[AllocationAsk]) -> None:
        self._allocator.allocate(asks)

    def release(self, runs: Sequence[int]) -> None:
        self._allocator.release(runs)

    def open_runs(self) -> list[int]:
        return self._allocator.open_runs()

    def is_releasing(self) -> bool:
        return self._allocator.is_releasing()


def _is_end(evidence: Evidence) -> bool:
    """Whether it may settle an attempt that has run."""
    match evidence:
        case WitnessRecord() | AccountingSaid() | NobodySaid() | NeverSeen():
            return True
        case QueueSaid(word=word):
            return not word.state.is_present
        case _:
            return False


def _sync(words: Sequence[object]) -> Sync:
    run, number, folders, excludes = words
    if not isinstance(run, int) or not isinstance(number, int):
        raise ValueError("no numbers")
    if not isinstance(folders, list) or not isinstance(excludes, list):
        raise ValueError("no folders")
    return Sync(run, number, tuple(map(str, folders)), tuple(map(str, excludes)))
