"""Watch the witnesses that run something: who enforces limits may itself be stopped, or hang while it starts a job.

A witness that is stopped is continued. One that can't do what is due (its job's limit or cancellation, with the kill
wait and a grace) is helped: what it has started is killed, so that it wakes, and it then says itself how that ended.
A job that lives on after that is said to: a program that became another user's, or a process that waits for a device.
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
from aver.model import reasons
from aver.model.evidence import HeldBack

LOOK_S = 1.0
STARTING_S = 2.0  # a job that has not begun by then is shown as being started
GRACE_S = 2.0
STUCK_S = 5.0  # a job that lives so long after it should have been killed is shown as one that can't be
STARTING = "its witness is starting it: a folder, a file or its program does not answer"
STUCK = "KILL was sent, and it lives on: a process of another user, or one that waits for a device or is frozen"


def notice(slot: Slot) -> HeldBack | None:
    """What there is to say of its start or its end, which take too long; each is told once."""
    if slot.has_begun and not slot.is_told_stuck:
        slot.is_told_stuck = _is_overdue(slot, STUCK_S) and _lives(slot.job_pid)
        return HeldBack(time.time(), reasons.CANNOT_BE_ENDED, STUCK) if slot.is_told_stuck else None
    if slot.has_begun or slot.is_told_starting or slot.order is None:
        return None
    slot.is_told_starting = time.monotonic() - slot.given_at >= STARTING_S
    return HeldBack(time.time(), reasons.STARTING, STARTING) if slot.is_told_starting else None


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


def _is_overdue(slot: Slot, more_s: float = 0.0) -> bool:
    """Whether its witness should have ended it by now. While it is started its limit counts from its order."""
    now = time.monotonic()
    kill_wait_s = slot.kill_wait_s
    if not slot.has_begun:
        limit_s = None if slot.order is None else slot.order.request.time_s
        ends = [slot.cancelled_at, None if limit_s is None else slot.given_at + limit_s]
        kill_wait_s = 0.0  # nobody is there to make use of it
    else:
        ends = [slot.cancelled_at, slot.due_s]
    return any(at is not None and now >= at + kill_wait_s + GRACE_S + more_s for at in ends)


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""


def _lives(pid: int | None) -> bool:
    return pid is not None and _state(pid) not in ("", "Z", "X")


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


def _send(pid: int, number: int, is_meant: Callable[[], bool]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send_signal(pid, number, is_meant)
