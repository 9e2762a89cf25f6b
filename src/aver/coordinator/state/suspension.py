"""Suspended jobs: what is shown is what the witnesses have done, not what was asked of them.

A request is durable before a witness hears of it, and is sent again after a restart. A job is SUSPENDED when the
witnesses of its script and of all tasks of its steps say that no process runs, and RUNNING again when all of them say
that their processes go on. What they said before the last request is no answer to it.
"""

from __future__ import annotations

from aver.coordinator.state import steps
from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.fold import emit
from aver.coordinator.state.live import LiveState
from aver.model import reasons
from aver.model.events import Observed
from aver.model.states import State

_WORDS = {State.SUSPENDED: "all of its processes are stopped", State.RUNNING: "its processes go on"}


def show(live: LiveState, now: float) -> bool:
    """Show the attempts that are as was asked; whether there were any."""
    if not live.moving:
        return False
    is_shown = False
    for attempt in list(live.moving.values()):
        if not _is_movable(attempt):
            del live.moving[attempt.key]
        elif not _is_awaited(attempt):
            del live.moving[attempt.key]
            _show(live, attempt, now)
        elif attempt.is_suspended and attempt.suspend_asked and False in _said(attempt):
            _emit(live, attempt, State.RUNNING, now)  # resumed, and to be suspended again
        else:
            continue
        is_shown = True
    return is_shown


def _show(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    state = State.SUSPENDED if attempt.suspend_asked else State.RUNNING
    if attempt.state is not state:
        _emit(live, attempt, state, now)
    if state is State.RUNNING:
        steps.resume(live, attempt, now)


def _emit(live: LiveState, attempt: LiveAttempt, state: State, now: float) -> None:
    said = _WORDS[state]
    emit(live, Observed(now, attempt.run, attempt.job, attempt.attempt, "witness", said, state, reasons.NONE))


def _is_movable(attempt: LiveAttempt) -> bool:
    """Not so of an attempt that has ended or is being ended."""
    return attempt.state in (State.RUNNING, State.SUSPENDED) and not attempt.is_over_time


def _said(attempt: LiveAttempt) -> list[bool | None]:
    """What the witnesses of its script and of its tasks have said since the last request."""
    return [attempt.is_still, *(task.is_still for step in attempt.live_steps() for task in step.running())]


def _is_awaited(attempt: LiveAttempt) -> bool:
    """Whether a witness has not said yet that it has done what was asked."""
    return not all(one is attempt.suspend_asked for one in _said(attempt))
