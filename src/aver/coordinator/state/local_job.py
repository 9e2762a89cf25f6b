"""What a witness's evidence does to an attempt on this machine: its start, and its verdict when the judge has one.

A script that ended before its steps is COMPLETING until they have ended; its verdict waits for that.
"""

from __future__ import annotations

from aver.coordinator.state import start, steps
from aver.coordinator.state.attempt import LiveAttempt, Parked
from aver.coordinator.state.eligibility import show_reason
from aver.coordinator.state.end import settle
from aver.coordinator.state.fold import emit
from aver.coordinator.state.live import LiveState
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Heard
from aver.judge.local import COORDINATOR, judge
from aver.model import reasons
from aver.model.events import Observed, RunMoved, Usage
from aver.model.evidence import (
    HeldBack,
    LimitMoved,
    LimitPassed,
    LookBegan,
    NotTaken,
    Resumed,
    RoomTaken,
    Suspended,
    Verdict,
    WitnessRecord,
    WitnessStart,
)
from aver.model.states import STARTED, State


def heard(live: LiveState, run: LiveRun, attempt: LiveAttempt, one: Heard, now: float) -> None:
    if isinstance(one.evidence, LimitMoved):
        steps.move_limit(live, attempt, one.evidence.due_s)
        return
    if isinstance(one.evidence, LimitPassed):  # its witness owns the time limit; its steps go by what that says
        attempt.is_over_time = True
        if attempt.is_suspended:  # its witness lets it go on, so that it can end
            said = "its time limit passed: it is being ended"
            emit(
                live,
                Observed(now, run.number, attempt.job, attempt.attempt, one.source, said, State.RUNNING, reasons.NONE),
            )
        steps.end_begun(live, attempt, now)
        return
    if isinstance(one.evidence, (Suspended, Resumed)):
        attempt.is_still = isinstance(one.evidence, Suspended)
        return
    if isinstance(one.evidence, LookBegan):
        said = "it has ended; its outputs are being looked at"
        emit(
            live,
            Observed(now, run.number, attempt.job, attempt.attempt, one.source, said, State.SETTLING, reasons.NONE),
        )
        return
    if isinstance(one.evidence, HeldBack):  # its start or its end takes long
        reason = one.evidence.reason
        if attempt.state is State.PENDING:
            show_reason(live, run, attempt.job, reason, now)
        elif attempt.state in STARTED and reason == reasons.CANNOT_BE_ENDED:
            emit(
                live,
                Observed(now, run.number, attempt.job, attempt.attempt, one.source, one.said, attempt.state, reason),
            )
        return
    if isinstance(one.evidence, NotTaken):
        if attempt.state is State.PENDING and attempt.is_dispatched:
            start.not_taken(live, attempt, now)
        return
    if attempt.is_behind:
        start.take_room(live, attempt)
    if isinstance(one.evidence, RoomTaken):
        return
    attempt.evidence.append(one.evidence)
    if isinstance(one.evidence, WitnessRecord):
        start.note_pace(live, attempt, one.evidence.elapsed_s)
        if attempt.state is State.PENDING and one.evidence.launch is None:  # it was over before its start was told
            _note_begun(live, run, attempt, one.evidence.started_at, now)
    if isinstance(one.evidence, WitnessStart):
        steps.move_limit(live, attempt, one.evidence.due_s)
        if attempt.state is State.PENDING:
            _started(live, run, attempt, one, one.evidence.at, now)
        return
    verdict = _judged(run, attempt)
    if verdict is None:
        return
    if attempt.is_busy:
        _park(live, run, attempt, one, verdict, now)
    else:
        settle(live, attempt, one, verdict, now)


def _judged(run: LiveRun, attempt: LiveAttempt) -> Verdict | None:
    return judge(attempt.evidence, run.rules(attempt.index, attempt.request, attempt.steps))


def _started(live: LiveState, run: LiveRun, attempt: LiveAttempt, one: Heard, at: float, now: float) -> None:
    usage = Usage(at, node=live.identity.host)
    emit(
        live,
        Observed(
            now, run.number, attempt.job, attempt.attempt, one.source, one.said, State.RUNNING, reasons.NONE, None,
            usage,
        ),
    )  # fmt: skip
    _note_begun(live, run, attempt, at, now)


def _note_begun(live: LiveState, run: LiveRun, attempt: LiveAttempt, at: float, now: float) -> None:
    if run.state is State.PENDING:
        emit(live, RunMoved(now, run.number, State.RUNNING, run.round))
    live.dependencies.started(run, attempt.job, at)
    live.dependencies.changed(run)


def _park(live: LiveState, run: LiveRun, attempt: LiveAttempt, one: Heard, verdict: Verdict, now: float) -> None:
    """The script has ended and steps of it run: they are ended first."""
    said = "its script has ended; its steps are being ended"
    emit(
        live,
        Observed(now, run.number, attempt.job, attempt.attempt, COORDINATOR, said, State.COMPLETING, reasons.NONE),
    )
    attempt.phase = Parked(one, verdict)
    live.parked[attempt.key] = attempt
    attempt.is_over_time = attempt.is_over_time or verdict.state is State.TIMEOUT
    steps.end_all(live, attempt, now)


def unpark(live: LiveState, now: float) -> bool:
    """Settle the scripts whose last step has ended; whether there were any."""
    if not live.parked:
        return False
    free = [attempt for attempt in live.parked.values() if not attempt.is_busy]
    for attempt in free:
        del live.parked[attempt.key]
        if isinstance(attempt.phase, Parked):
            verdict = _judged(live.runs[attempt.run], attempt)  # its steps have told whether they were warned
            settle(live, attempt, attempt.phase.heard, verdict or attempt.phase.verdict, now)
    return bool(free)
