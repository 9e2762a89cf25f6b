"""Suspended jobs: what is shown is what the witnesses have done, not what was asked of them.

A request is durable before a witness hears of it, and is sent again after a restart. A job is SUSPENDED when the
witnesses of its script and of all tasks of its steps say that no process runs, and RUNNING again when all of them say
that their processes go on.
"""

from __future__ import annotations

from aver.coordinator.state import steps
from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.fold import emit
from aver.coordinator.state.live import LiveState
from aver.model import reasons
from aver.model.events import Observed
from aver.model.states import State

_SAID = {State.SUSPENDED: "all of its processes are stopped", State.RUNNING: "its processes go on"}


def show(live: LiveState, now: float) -> bool:
    """Show the attempts that are as was asked; whether there were any."""
    done = [attempt for attempt in live.moving.values() if not _is_awaited(attempt)]
    for attempt in done:
        del live.moving[attempt.key]
        if _is_movable(attempt):
            _show(live, attempt, now)
    return bool(done)


def _show(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    state = State.SUSPENDED if attempt.suspend_asked else State.RUNNING
    if attempt.state is not state:
        said = _SAID[state]
        emit(live, Observed(now, attempt.run, attempt.job, attempt.attempt, "witness", said, state, reasons.NONE))
    if state is State.RUNNING:
        steps.resume(live, attempt, now)


def _is_movable(attempt: LiveAttempt) -> bool:
    """Not so of an attempt that has ended or is being ended."""
    return attempt.state in (State.RUNNING, State.SUSPENDED) and not attempt.is_over_time


def _is_awaited(attempt: LiveAttempt) -> bool:
    """Whether a witness has not said yet that it has done what was asked."""
    said = [attempt.is_still, *(task.is_still for step in attempt.live_steps() for task in step.running())]
    return _is_movable(attempt) and not all(one is attempt.suspend_asked for one in said)
