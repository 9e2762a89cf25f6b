"""How an attempt ends: it has one verdict, gives back what it took, and its engine may forget it once that is durable.

No sockets, no disk, no clock. A script that ended before its steps waits for them; what never began is given its
verdict too, and never begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from aver.coordinator.state.attempt import LiveAttempt, Planned, Reading, Running
from aver.coordinator.state.fold import emit
from aver.coordinator.state.live import Ending, LiveState
from aver.coordinator.state.run import LiveRun
from aver.coordinator.state.succession import add_generated, reason_to_go_on
from aver.engines.api import Heard
from aver.judge.local import COORDINATOR, NeverRan, judge, judge_unstarted
from aver.judge.scheduler import is_open, judge_cluster
from aver.judge.step import as_own_step, with_step_warnings
from aver.model import reasons
from aver.model.events import JobMoved, JobsEnded, Observed, Usage
from aver.model.evidence import (
    AccountingSaid,
    CancelledBefore,
    Evidence,
    GeneratedRead,
    StartedAgain,
    Verdict,
    WitnessRecord,
)
from aver.model.job import FlowSpec
from aver.model.record import replace
from aver.model.slurm_options import SlurmKind
from aver.model.states import State, attempt_may_move
from aver.plan.planner import MANY

KEPT_REASONS = (  # by Slurm, when it cancels
    reasons.JOB_HELD_USER,
    *reasons.REQUEUED_HELD,
    reasons.BEGIN_TIME,
    reasons.DEPENDENCY_NEVER_SATISFIED,
)

# ---- a verdict ----------------------------------------------------------------------------------


def settle(live: LiveState, attempt: LiveAttempt, one: Heard, verdict: Verdict, now: float) -> None:
    """The attempt has its verdict; the job has it too, unless another attempt is due.

    Of a completion that brings jobs these are read first: they are part of how it ended.
    """
    run = live.runs[attempt.run]
    brings_jobs = verdict.state is State.COMPLETED and run.spec(attempt.index).generates is not None
    if brings_jobs and not attempt.requeue and not goes_on(attempt):  # else its next attempt brings them
        _read_generated(live, run, attempt, one, verdict, now)
    else:
        _settle(live, run, attempt, one, verdict, now)


def goes_on(attempt: LiveAttempt) -> bool:
    """Whether the engine has started its job again by itself."""
    return attempt.can.may_requeue and any(isinstance(one, StartedAgain) for one in attempt.evidence)


def _settle(live: LiveState, run: LiveRun, attempt: LiveAttempt, one: Heard, verdict: Verdict, now: float) -> None:
    release(live, attempt)
    _note_ending(live, attempt, verdict)
    if attempt.steps is not None:
        verdict = with_step_warnings(verdict, attempt.steps.warnings)
        slurm = run.spec(attempt.index).slurm
        if slurm is not None and slurm.kind is SlurmKind.SRUN:
            verdict = as_own_step(verdict, bool(attempt.steps.out_of_memory))
    usage = usage_of(attempt, one.evidence, live.identity.host)
    again = reasons.REQUEUE if goes_on(attempt) else reason_to_go_on(live, run, attempt, verdict)
    job_state, job_reason = (verdict.state, verdict.reason) if again is None else (State.PENDING, again)
    emit(
        live,
        Observed(
            now, run.number, attempt.job, attempt.attempt, one.source, one.said,
            verdict.state, verdict.reason, verdict, usage,
            None if job_state is verdict.state else job_state,
            None if job_reason == verdict.reason else job_reason, is_start=_tells_start(attempt, one.evidence),
        ),
    )  # fmt: skip
    wait = run.due.get(attempt.index)
    if wait is not None:
        live.timers.at(wait.until, "again", attempt.job, wait.since)


def _tells_start(attempt: LiveAttempt, evidence: Evidence) -> bool:
    """Whether the attempt was over before anybody heard of its start."""
    is_untold = attempt.started_at is None and not attempt.can.has_scheduler
    return is_untold and isinstance(evidence, WitnessRecord) and evidence.launch is None


def release(live: LiveState, attempt: LiveAttempt) -> None:
    """Give back the attempt's room, or its place among the intents that were made ahead."""
    if isinstance(attempt.phase, Planned):
        live.ahead -= 1
        live.packer.remove(attempt.job)
    else:
        live.packer.finish(attempt.job)


def _note_ending(live: LiveState, attempt: LiveAttempt, verdict: Verdict) -> None:
    stays_open = attempt.can.may_tell_late and is_open(verdict.state, verdict.exit, verdict.verified)
    live.ending[attempt.job, attempt.attempt] = Ending(attempt.key, stays_open)


# ---- jobs that it generated ---------------------------------------------------------------------


def _read_generated(
    live: LiveState, run: LiveRun, attempt: LiveAttempt, one: Heard, verdict: Verdict, now: float
) -> None:
    """The attempt is COMPLETING while its file is read; after a crash its end is heard again, and so on."""
    attempt.phase = Reading(one, verdict)
    if attempt_may_move(attempt.state, State.COMPLETING):
        said = "it has completed; the jobs that it generated are being read"
        emit(
            live,
            Observed(now, run.number, attempt.job, attempt.attempt, COORDINATOR, said, State.COMPLETING, reasons.NONE),
        )
    live.read_generated(run, attempt.index, partial(_end_reading, live, attempt))


def _end_reading(live: LiveState, attempt: LiveAttempt, found: FlowSpec | str, now: float) -> None:
    """`Machine.advance` does what follows, in the same turn of the loop."""
    if not isinstance(attempt.phase, Reading):
        return  # it was cancelled meanwhile
    run = live.runs[attempt.run]
    read = None if attempt.requeue else add_generated(live, run, attempt.index, found, now)
    _judge_again(live, run, attempt, attempt.phase, read, now)


def stop_reading(live: LiveState, attempt: LiveAttempt, by: str, now: float) -> None:
    """A person cancels it: nobody waits for its file any longer, and nothing of it is added."""
    assert isinstance(attempt.phase, Reading)
    problem = f"cancelled by {by} before the jobs that it generated were read"
    _judge_again(live, live.runs[attempt.run], attempt, attempt.phase, GeneratedRead(now, problem, True), now)


def _judge_again(
    live: LiveState, run: LiveRun, attempt: LiveAttempt, reading: Reading, read: GeneratedRead | None, now: float
) -> None:
    verdict: Verdict | None = reading.verdict
    if read is not None:
        attempt.evidence.append(read)
        decide = judge_cluster if attempt.can.has_scheduler else judge
        verdict = decide(attempt.evidence, run.rules(attempt.index, attempt.request, attempt.steps))
    assert verdict is not None
    attempt.phase = Running(attempt.started_at)
    _settle(live, run, attempt, reading.heard, verdict, now)


# ---- without a start ----------------------------------------------------------------------------


def end_unstarted(live: LiveState, run: LiveRun, index: int, evidence: NeverRan, now: float) -> None:
    """A job that has not started gets its verdict, and never starts. What was only planned of it is not an attempt."""
    job = run.job_number(index)
    shown = live.shown.get(job)
    if isinstance(evidence, CancelledBefore) and shown in KEPT_REASONS and run.spec(index).slurm is not None:
        evidence = replace(evidence, pending_reason=shown)
    verdict = judge_unstarted(evidence)
    live.packer.remove(job)
    live.timers.drop(job, "begin", "again")
    live.dependencies.leave(job)
    attempt = live.by_job.get(job)
    if attempt is not None:
        release(live, attempt)
    if attempt is None or not attempt.is_dispatched:
        emit(live, JobMoved(now, run.number, job, verdict.state, verdict.reason, verdict))
        return
    _note_ending(live, attempt, verdict)
    said = verdict.detail or str(verdict.state)
    emit(
        live,
        Observed(now, run.number, job, attempt.attempt, verdict.source, said, verdict.state, verdict.reason, verdict),
    )


def end_all_unstarted(live: LiveState, run: LiveRun, first: int, last: int, evidence: NeverRan, now: float) -> None:
    """The same of many jobs of one definition that have no attempt, by their places in the run."""
    number = run.job_number(first)
    jobs = range(number, number + last - first + 1)
    if isinstance(evidence, CancelledBefore) and live.shown and run.spec(first).slurm is not None:
        rows = [(_as_shown(evidence, reason), row) for reason, row in _by_kept_reason(live, jobs)]
    else:
        rows = [(evidence, jobs)]
    for said, row in rows:
        if len(row) < MANY:
            for job in row:
                end_unstarted(live, run, first + job - number, evidence, now)
            continue
        live.packer.remove_all(row)
        live.timers.drop_all(row, "begin", "again")
        live.dependencies.leave_all(row)
        emit(live, JobsEnded(now, run.number, row[0], row[-1], judge_unstarted(said)))


def _as_shown(evidence: CancelledBefore, reason: str | None) -> NeverRan:
    return evidence if reason is None else replace(evidence, pending_reason=reason)


def _by_kept_reason(live: LiveState, jobs: range) -> Iterator[tuple[str | None, range]]:
    """Rows of jobs that keep the same reason; None: they keep none."""
    for reason, some in groupby(jobs, lambda job: _kept(live.shown.get(job))):
        row = list(some)
        yield reason, range(row[0], row[-1] + 1)


def _kept(reason: str | None) -> str | None:
    return reason if reason in KEPT_REASONS else None


def cancel_unstarted(
    live: LiveState, attempt: LiveAttempt, now: float, by: str = "a request", before: str = "it began"
) -> None:
    """End an attempt that never began; without `by` its cancellation is durable."""
    end_unstarted(live, live.runs[attempt.run], attempt.index, CancelledBefore(now, by, before), now)


# ---- durable ------------------------------------------------------------------------------------


def is_ending(live: LiveState, key: str) -> bool:
    """Whether this attempt has a verdict that is not durable yet: its engine must not forget it."""
    return bool(live.ending) and any(one.key == key for one in live.ending.values())


def verdict_is_durable(live: LiveState, event: Observed) -> str | None:
    """The key that the attempt's engine may forget; None: it goes on asking, or knows already."""
    ending = live.ending.pop((event.job, event.attempt), None)
    return None if ending is None or ending.is_open else ending.key


# ---- what it used -------------------------------------------------------------------------------


def usage_of(attempt: LiveAttempt, evidence: Evidence, host: str) -> Usage | None:
    """What it used: as its witness measured it, else as accounting has it. `host` is this machine."""
    if attempt.can.has_scheduler:
        return cluster_usage(attempt.evidence, attempt.started_at, attempt.node)
    if isinstance(evidence, WitnessRecord):
        return as_measured(evidence, host)
    return Usage(attempt.started_at, node=host) if attempt.started_at is not None else None


def as_measured(record: WitnessRecord, node: str | None) -> Usage:
    peak = record.peak_bytes if record.highest is None else record.highest[0]
    return Usage(record.started_at, record.elapsed_s, record.user_s, record.sys_s, peak, node, record.is_cpu_least)


def cluster_usage(evidence: Sequence[Evidence], started_at: float | None, node: str) -> Usage | None:
    """As its witness measured it, else as accounting has it; where it began is known from before, if at all."""
    record = next((one for one in evidence if isinstance(one, WitnessRecord)), None)
    account = next((one for one in reversed(evidence) if isinstance(one, AccountingSaid)), None)
    where = node or (account.node if account is not None else "") or None
    if record is not None:
        return as_measured(record, where)
    if account is not None and account.started_at is not None:
        return Usage(
            account.started_at, account.elapsed_s, account.user_s, account.sys_s, account.maxrss_bytes, where,
        )  # fmt: skip
    return Usage(started_at, node=where) if started_at is not None else None
