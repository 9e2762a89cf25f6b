"""An engine whose cluster loses every job: it says what Slurm's queue and accounting say of such ends, word for word.

The settings register it: `[engines] lossy = "lossy_engine:ENGINE"`. A job's name chooses its end. Nothing is run: the
coordinator, the judge and the store do with what it says what they do with Slurm's words.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from aver.engines.api import (
    UNLIMITED,
    Capabilities,
    Control,
    Heard,
    ObserveReply,
    Order,
    Registration,
    Seen,
    SubmitReply,
    Submitted,
)
from aver.model.evidence import AccountingSaid, Evidence, LeftQueue, QueueSaid, SchedulerWord, Taken
from aver.model.states import SchedulerState

ENDS = {  # by the job's name: the job's row of accounting, and the row of its script
    "node-fail": (SchedulerState.NODE_FAIL, "1:0", SchedulerState.CANCELLED, ""),
    "boot-fail": (SchedulerState.BOOT_FAIL, "0:1", None, ""),
    "preempted": (SchedulerState.PREEMPTED, "0:15", SchedulerState.CANCELLED, "0:15"),
}


class LossyEngine:
    """See `aver.engines.api.Engine`."""

    name = "lossy"
    totals = UNLIMITED

    def __init__(self) -> None:
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._heard: list[Heard] = []

    def fileno(self) -> int:
        return self._wake_fd

    def attach(self) -> None:
        """Nothing outlives the coordinator."""

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        for order in orders:
            name = next(pair for pair in order.env if pair.startswith("AVER_JOB_NAME=")).partition("=")[2]
            self._heard += [Heard(order.key, self.name, type(one).__name__, one) for one in _said(order.key, name)]
            os.eventfd_write(self._wake_fd, 1)
        return [Submitted(order.key) for order in orders]

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        return [Seen(key) for key in keys]

    def control(self, controls: Sequence[Control]) -> None:
        """All of them end at once."""

    def adopt(self, before: str, key: str) -> None:
        """Never: nothing is started again."""

    def heard(self) -> list[Heard]:
        if self._heard:
            os.eventfd_read(self._wake_fd)
        heard, self._heard = self._heard, []
        return heard

    def settle(self, keys: Sequence[str]) -> None:
        """Nothing is kept of them."""

    def tidy(self) -> float | None:
        return None

    def close(self) -> None:
        os.close(self._wake_fd)


def _said(key: str, name: str) -> list[Evidence]:
    now = time.time()
    state, ended, script, script_ended = ENDS[name]
    row = AccountingSaid(
        now, _word(state), ended, None if script is None else _word(script), script_ended, has_whole_codes=True,
        started_at=now - 1, ended_at=now, elapsed_s=1.0, node="n1",
    )  # fmt: skip
    return [Taken(now, key), QueueSaid(now, _word(SchedulerState.RUNNING), started_at=now - 1, node="n1"),
            LeftQueue(now), row]  # fmt: skip


def _word(state: SchedulerState) -> SchedulerWord:
    return SchedulerWord(state, state.value)


ENGINE = Registration(
    "lossy",
    Capabilities(has_queue=True, has_scheduler=True, tells_steps=True, signals_steps=True),
    lambda site: LossyEngine(),
    lambda site: False,
)
