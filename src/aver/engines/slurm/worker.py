"""A thread that works for the coordinator's loop: the loop never waits for it, and hears what it has to say.

What is put here wakes the loop through a descriptor. No wake-up is lost and none is repeated: the descriptor is read
before what was put is taken. A bug in the thread is raised in the loop, since nobody looks at a thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from aver.engines.api import Heard, Order, Rejected, SubmitReply, Unsure

LEAVING_S = 2.0  # so long a thread that waits for one of Slurm's commands is waited for


class Worker(ABC):
    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Condition()
        self._heard: list[Heard] = []
        self._is_closing = False
        self._bug: BaseException | None = None
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _turn_until_closed(self) -> None:
        """What the thread does; it returns when `_is_closing` is set, of which `_lock` tells it."""

    def fileno(self) -> int:
        return self._wake_fd

    def heard(self) -> list[Heard]:
        if self._bug is not None:
            raise self._bug
        with contextlib.suppress(BlockingIOError):  # before it is looked: what comes now wakes the loop again
            os.eventfd_read(self._wake_fd)
        with self._lock:
            heard, self._heard = self._heard, []
        return heard

    def tidy(self) -> float | None:
        """The thread lets go of what is idle itself."""
        return None

    def _put(self, found: Sequence[Heard]) -> None:
        with self._lock:
            self._heard += found
        os.eventfd_write(self._wake_fd, 1)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _stop(self) -> None:
        with self._lock:
            self._is_closing = True
            self._lock.notify()
        if self._thread is not None:
            self._thread.join(timeout=LEAVING_S)
        if self._thread is None or not self._thread.is_alive():
            os.close(self._wake_fd)  # a thread that still waits would write to whoever has the number next

    @staticmethod
    def _accept(orders: Sequence[Order], said: str) -> tuple[list[Order], list[SubmitReply]]:
        """The orders that a node can carry out, and the reply to each of all; `said` of those that it can."""
        accepted = [order for order in orders if not order.streams]
        rejected = "descriptors can't be handed to a cluster's node"
        return accepted, [
            Rejected(order.key, rejected) if order.streams else Unsure(order.key, said) for order in orders
        ]

    def _run(self) -> None:
        try:
            self._turn_until_closed()
        except BaseException as error:
            self._bug = error
            os.eventfd_write(self._wake_fd, 1)
            raise
