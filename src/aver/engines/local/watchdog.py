"""Watch the witnesses that run something: who enforces limits may itself be stopped, or hang while it starts a job.

A witness that is stopped is continued. One that can't do what is due (its job's limit or cancellation, with the kill
wait and a grace) is helped: what it has started is killed, so that it wakes, and it then says itself how that ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

from aver.engines.local.process import send_signal
from aver.engines.local.slot import Slot
from aver.engines.local.sweep import end_once

LOOK_S = 1.0
STARTING_S = 2.0  # a job that has not begun by then is shown as being started
GRACE_S = 2.0
STARTING = "its witness is starting it: a folder, a file or its program does not answer"


def is_starting(slot: Slot) -> bool:
    """Whether its order was given a while ago and it has not begun; told once."""
    if slot.has_begun or slot.is_told_starting or slot.order is None:
        return False
    slot.is_told_starting = time.monotonic() - slot.given_at >= STARTING_S
    return slot.is_told_starting


def tend(slot: Slot, cgroups: list[str]) -> None:
    """Help the witness of this slot if it is stopped, or late with what it has to do."""
    pid = slot.witness_pid
    if pid is None or slot.key is None:
        return
    is_stopped = _state(pid) == "T"
    if is_stopped:
        _send(pid, signal.SIGCONT, slot.is_witness)
    if not _is_overdue(slot):
        return
    if slot.has_begun:
        end_once(slot.key, slot.job_pid, cgroups, {pid, os.getpid()})
    else:
        for child in _children(pid):  # not yet the job: it has no mark, no session and no cgroup of its own
            _send(child, signal.SIGKILL, lambda child=child: child in _children(pid))  # type: ignore[misc]


def _is_overdue(slot: Slot) -> bool:
    """Whether its witness should have ended it by now. While it is started its limit counts from its order."""
    now = time.monotonic()
    kill_wait_s = slot.kill_wait_s
    if not slot.has_begun:
        limit_s = None if slot.order is None else slot.order.request.time_s
        ends = [slot.cancelled_at, None if limit_s is None else slot.given_at + limit_s]
        kill_wait_s = 0.0  # nobody is there to make use of it
    else:
        ends = [slot.cancelled_at, slot.due_s]
    return any(at is not None and now >= at + kill_wait_s + GRACE_S for at in ends)


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


def _send(pid: int, number: int, is_meant: Callable[[], bool]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send_signal(pid, number, is_meant)
