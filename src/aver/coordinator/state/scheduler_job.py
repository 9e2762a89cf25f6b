"""What a cluster's evidence does to an attempt: its states on the way, and its verdict when the judge has one.

Nothing is shown as done before it is: an attempt that left the queue, or that the queue calls COMPLETED, is SETTLING.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aver.coordinator.state.scheduler_steps import ClusterSteps
from aver.engines.api import LOCAL, Heard
from aver.judge.scheduler import COORDINATOR, UNSETTLED, judge_cluster, plain_word
from aver.model import reasons
from aver.model.events import Observed, RunMoved, Usage
from aver.model.evidence import (
    AccountingSaid,
    Evidence,
    HeldBack,
    LeftQueue,
    NotTaken,
    QueueSaid,
    StartedAgain,
    Taken,
    WitnessRecord,
)
from aver.model.states import State, attempt_may_move

if TYPE_CHECKING:
    from aver.coordinator.state.live import LiveAttempt, LiveRun
    from aver.coordinator.state.machine import Driver

NOT_BEGUN = (State.PENDING, State.SUBMITTED)
_TASK = re.compile(r"(?P<attempt>.+)\.s(?P<step>[0-9]{1,9})\.t(?P<task>[0-9]{1,9})")
QUEUE_STATES = {
    "PENDING": State.PENDING,
    "REQUEUED": State.PENDING,
    "REQUEUE_HOLD": State.PENDING,
    "REQUEUE_FED": State.PENDING,
    "RESV_DEL_HOLD": State.PENDING,
    "SPECIAL_EXIT": State.PENDING,
    "CONFIGURING": State.RUNNING,
    "RUNNING": State.RUNNING,
    "RESIZING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "STOPPED": State.SUSPENDED,
    "SUSPENDED": State.SUSPENDED,
    "COMPLETING": State.COMPLETING,
    "STAGE_OUT": State.COMPLETING,
}


class Clustering:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._steps = ClusterSteps(driver)

    def heard(self, run: LiveRun, attempt: LiveAttempt, one: Heard, now: float) -> None:
        if isinstance(one.evidence, NotTaken):
            attempt.evidence.clear()
            attempt.is_dispatched = False
            self._driver.starting.start_again(attempt, now)
            return
        attempt.evidence.append(one.evidence)
        if isinstance(one.evidence, QueueSaid) and one.evidence.node:
            attempt.node = one.evidence.node
        verdict = judge_cluster(attempt.evidence, run.rules(attempt.index))
        if verdict is not None:
            self._steps.over(attempt, now)
            self._driver.ending.settle(run, attempt, one.source, one.said, one.evidence, verdict, now)
            return
        self._move(run, attempt, one, now)

    def goes_on(self, attempt: LiveAttempt) -> bool:
        """Whether the cluster has started its job again by itself."""
        return attempt.engine != LOCAL and any(isinstance(one, StartedAgain) for one in attempt.evidence)

    def heard_of_task(self, one: Heard, now: float) -> bool:
        """Take the record of a task; False if it is not that of a live attempt on a cluster."""
        name = _TASK.fullmatch(one.key)
        attempt = self._driver.attempts.get(name["attempt"]) if name is not None else None
        if name is None or attempt is None or attempt.engine == LOCAL or not isinstance(one.evidence, WitnessRecord):
            return False
        number = int(name["step"])
        if attempt.state in NOT_BEGUN:  # from here on no word of the queue can take back that its steps have run
            run, said = self._driver.runs[attempt.run], f"a task of step {number} left its record"
            self._show(run, attempt, COORDINATOR, said, State.RUNNING, reasons.NONE, None, now)
        self._steps.heard(attempt, number, int(name["task"]), one.evidence, one, now)
        return True

    def _move(self, run: LiveRun, attempt: LiveAttempt, one: Heard, now: float) -> None:
        """What is shown meanwhile; a record that does not settle it yet is kept as evidence all the same."""
        usage = _start_of(attempt, one.evidence)
        if isinstance(one.evidence, WitnessRecord):
            state, reason = attempt.state, attempt.shown_reason or reasons.NONE
            if state in NOT_BEGUN:  # who has a record has run
                state, reason = State.RUNNING, reasons.NONE
            self._show(run, attempt, one.source, one.said, state, reason, usage, now)
            return
        moved = _on_the_way(one.evidence, attempt.state)
        if moved is None or not attempt_may_move(attempt.state, moved[0]):
            return
        held = one.evidence.text if isinstance(one.evidence, HeldBack) else attempt.held_text
        if moved != (attempt.state, attempt.shown_reason) or usage is not None or held != attempt.held_text:
            attempt.held_text = held
            self._show(run, attempt, one.source, one.said, *moved, usage, now)

    def _show(
        self, run: LiveRun, attempt: LiveAttempt, source: str, said: str, state: State, reason: str,
        usage: Usage | None, now: float,
    ) -> None:  # fmt: skip
        attempt.state, attempt.shown_reason = state, reason
        driver = self._driver
        driver.emit(Observed(now, run.number, attempt.job, attempt.attempt, source, said, state, reason, None, usage))
        driver.note_reason(attempt.job, reason)
        if state not in NOT_BEGUN and run.state is State.PENDING:
            run.state = State.RUNNING
            driver.emit(RunMoved(now, run.number, State.RUNNING, run.round))
        if usage is not None:
            attempt.started_at = usage.started_at
            driver.depending.started(run, attempt.job, usage.started_at)
            driver.depending.changed(run, now)


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
            state = QUEUE_STATES.get(plain_word(word))
            if state is State.PENDING:
                return state, reason or reasons.PRIORITY
            if state is not None:
                return state, reasons.NONE
            return (State.SETTLING, reasons.NONE) if plain_word(word) not in UNSETTLED else None
        case _:
            return None


def usage_of(attempt: LiveAttempt, evidence: Evidence, host: str) -> Usage | None:
    """What it used: as its witness measured it, else as accounting has it. `host` is this machine."""
    if attempt.engine != LOCAL:
        return cluster_usage(attempt.evidence, attempt.started_at, attempt.node)
    if isinstance(evidence, WitnessRecord):
        return _as_measured(evidence, host)
    return Usage(attempt.started_at, node=host) if attempt.started_at is not None else None


def _as_measured(record: WitnessRecord, node: str | None) -> Usage:
    peak = record.peak_bytes if record.peak_bytes is not None else record.maxrss_bytes
    return Usage(record.started_at, record.elapsed_s, record.user_s, record.sys_s, peak, node)


def cluster_usage(evidence: Sequence[Evidence], started_at: float | None, node: str) -> Usage | None:
    """As its witness measured it, else as accounting has it; where it began is known from before, if at all."""
    record = next((one for one in evidence if isinstance(one, WitnessRecord)), None)
    account = next((one for one in reversed(evidence) if isinstance(one, AccountingSaid)), None)
    where = node or (account.node if account is not None else "") or None
    if record is not None:
        return _as_measured(record, where)
    if account is not None and account.started_at is not None:
        return Usage(
            account.started_at, account.elapsed_s, account.user_s, account.sys_s, account.maxrss_bytes, where,
        )  # fmt: skip
    return Usage(started_at, node=where) if started_at is not None else None
