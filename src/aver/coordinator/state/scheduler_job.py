"""What a cluster's evidence does to an attempt: its states on the way, and its verdict when the judge has one.

Nothing is shown as done before it is: an attempt that left the queue, or that the queue calls COMPLETED, is SETTLING.
"""

from __future__ import annotations

import re

from aver.coordinator.state import scheduler_steps
from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.end import goes_on, settle
from aver.coordinator.state.fold import emit
from aver.coordinator.state.live import LiveState
from aver.coordinator.state.run import LiveRun
from aver.coordinator.state.start import go_on, start_again
from aver.engines.api import Heard
from aver.judge.scheduler import COORDINATOR, judge_cluster
from aver.model import reasons
from aver.model.events import Observed, RunMoved, Usage
from aver.model.evidence import (
    CancelUnheard,
    Evidence,
    HeldBack,
    LeftQueue,
    NotTaken,
    QueueSaid,
    StartedAgain,
    Taken,
    WitnessRecord,
)
from aver.model.states import SchedulerState, State, attempt_may_move

NOT_BEGUN = (State.PENDING, State.SUBMITTED)
_TASK = re.compile(r"(?P<attempt>.+)\.s(?P<step>[0-9]{1,9})\.t(?P<task>[0-9]{1,9})")
SHOWN = {
    SchedulerState.PENDING: State.PENDING,
    SchedulerState.RUNNING: State.RUNNING,
    SchedulerState.SUSPENDED: State.SUSPENDED,
    SchedulerState.COMPLETING: State.COMPLETING,
}


def heard(live: LiveState, run: LiveRun, attempt: LiveAttempt, one: Heard, now: float) -> None:
    if isinstance(one.evidence, NotTaken):
        attempt.evidence.clear()
        start_again(live, attempt, now)
        return
    if isinstance(one.evidence, CancelUnheard):
        _show(live, run, attempt, one.source, one.said, attempt.state, attempt.shown_reason or reasons.NONE, None, now)
        return
    attempt.evidence.append(one.evidence)
    if isinstance(one.evidence, QueueSaid) and one.evidence.node:
        attempt.node = one.evidence.node
    verdict = judge_cluster(attempt.evidence, run.rules(attempt.index, attempt.request, attempt.steps))
    if verdict is None:
        _move(live, run, attempt, one, now)
        return
    scheduler_steps.over(live, attempt, now)
    settle(live, attempt, one, verdict, now)
    if goes_on(attempt):
        go_on(live, attempt, now)


def heard_of_task(live: LiveState, one: Heard, now: float) -> bool:
    """Take the record of a task; False if it is not that of a live attempt on a cluster."""
    name = _TASK.fullmatch(one.key)
    attempt = live.attempts.get(name["attempt"]) if name is not None else None
    if name is None or attempt is None or not attempt.can.tells_steps or not isinstance(one.evidence, WitnessRecord):
        return False
    number = int(name["step"])
    if attempt.state in NOT_BEGUN:  # from here on no word of the queue can take back that its steps have run
        run, said = live.runs[attempt.run], f"a task of step {number} left its record"
        _show(live, run, attempt, COORDINATOR, said, State.RUNNING, reasons.NONE, None, now)
    scheduler_steps.heard(live, attempt, number, int(name["task"]), one.evidence, one, now)
    return True


def _move(live: LiveState, run: LiveRun, attempt: LiveAttempt, one: Heard, now: float) -> None:
    """What is shown meanwhile; a record that does not settle it yet is kept as evidence all the same."""
    usage = _start_of(attempt, one.evidence)
    if isinstance(one.evidence, WitnessRecord):
        state, reason = attempt.state, attempt.shown_reason or reasons.NONE
        if state in NOT_BEGUN:  # who has a record has run
            state, reason = State.RUNNING, reasons.NONE
        _show(live, run, attempt, one.source, one.said, state, reason, usage, now)
        return
    moved = _on_the_way(one.evidence, attempt.state)
    if moved is None or not attempt_may_move(attempt.state, moved[0]):
        return
    held = one.evidence.text if isinstance(one.evidence, HeldBack) else attempt.held_text
    if moved != (attempt.state, attempt.shown_reason) or usage is not None or held != attempt.held_text:
        attempt.held_text = held
        _show(live, run, attempt, one.source, one.said, *moved, usage, now, one.evidence)


def _show(
    live: LiveState, run: LiveRun, attempt: LiveAttempt, source: str, said: str, state: State, reason: str,
    usage: Usage | None, now: float, evidence: Evidence | None = None,
) -> None:  # fmt: skip
    scheduler_id = evidence.id if isinstance(evidence, Taken) else None
    allocation = evidence.allocation if isinstance(evidence, QueueSaid) else None
    emit(
        live,
        Observed(
            now, run.number, attempt.job, attempt.attempt, source, said, state, reason, None, usage,
            scheduler_id=scheduler_id, allocation=allocation,
        ),
    )  # fmt: skip
    if state not in NOT_BEGUN and run.state is State.PENDING:
        emit(live, RunMoved(now, run.number, State.RUNNING, run.round))
    if usage is not None:
        live.dependencies.started(run, attempt.job, usage.started_at)
        live.dependencies.changed(run)


def _start_of(attempt: LiveAttempt, evidence: Evidence) -> Usage | None:
    """When it began, if that is news."""
    if attempt.started_at is not None or not isinstance(evidence, (QueueSaid, WitnessRecord)):
        return None
    node = evidence.node if isinstance(evidence, QueueSaid) else attempt.node
    return None if evidence.started_at is None else Usage(evidence.started_at, node=node or None)


def _on_the_way(evidence: Evidence, before: State) -> tuple[State, str] | None:
    match evidence:
        case Taken():
            return (State.SUBMITTED, reasons.NONE) if before is State.PENDING else None
        case HeldBack(reason=reason):  # before it is handed over, or its files are not back
            return (before, reason) if before in (State.PENDING, State.SETTLING) else None
        case LeftQueue() | StartedAgain():
            return State.SETTLING, reasons.NONE
        case QueueSaid(word=word, reason=reason):
            state = SHOWN.get(word.state)
            if state is State.PENDING:
                return state, reason or reasons.PRIORITY
            if state is not None:
                return state, reasons.NONE
            return (State.SETTLING, reasons.NONE) if not word.state.is_present else None
        case _:
            return None
