"""Whether an attempt is followed by another one, with what, and when.

Pure: attempts and a verdict in, a decision out. A retry repeats what failed, by the job's own
rule and within the run's budget. A continuation goes on after a checkpoint; it has its own
count (`rounds`) and takes nothing from the retries. On a cluster an attempt that the cluster lost or evicted is
tried again, and that counts nowhere; on one machine only where the job or the settings say `requeue`. A cancelled job
is tried again only if the rule lists CANCELLED by name.

What a person starts with `aver retry` begins a new count: give only the attempts since then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from aver.model.evidence import Verdict
from aver.model.job import JobSpec, Request, RetryRule
from aver.model.reasons import DEADLINE
from aver.model.record import Record
from aver.model.states import State

MIB = 1024 * 1024
LONGEST_DELAY_S = 24 * 3600.0
LOST = frozenset({State.NODE_FAIL, State.BOOT_FAIL, State.PREEMPTED})  # no fault of the program
MOST_LOSSES = 20
LOSS_DELAY_S = 5.0


class Why(StrEnum):
    """Also the reason with which the job is PENDING meanwhile."""

    RETRY = "Retry"
    CHECKPOINT = "Checkpoint"
    LOST = "Requeue"


class AttemptSummary(Record):
    """An attempt that has ended: its number, what it might use, and how it ended."""

    attempt: int
    request: Request
    verdict: Verdict


class Again(Record):
    """One more attempt, not before `delay_s` has passed."""

    request: Request
    delay_s: float
    why: Why


def decide(
    spec: JobSpec,
    attempts: Sequence[AttemptSummary],
    verdict: Verdict,
    budget_left: int | None,
    request: Request | None = None,
    is_requeued: bool = False,
    most_bytes: int | None = None,
) -> Again | None:
    """Return the attempt that is due after an attempt with this verdict, or None: the job is settled.

    `attempts` are those before it, in order. `request` is what it might use itself; None: what the rule made of the
    attempt before it. `budget_left` is how many retries the whole run may still make; None: unlimited. Continuations
    after a checkpoint are not counted there. `is_requeued`: it is tried again without a rule when it was lost. Memory
    does not grow beyond `most_bytes`, what the machine has.
    """
    if request is None:
        request = _request_after(spec, attempts[-1], most_bytes) if attempts else spec.request
    if verdict.state is State.CHECKPOINTED and spec.checkpoint is not None:
        continued = sum(1 for attempt in attempts if _was_continued(spec, attempt))
        if continued < spec.checkpoint.rounds:
            return Again(request, 0.0, Why.CHECKPOINT)
    if is_requeued and verdict.state in LOST:
        losses = sum(1 for attempt in attempts if attempt.verdict.state in LOST)
        return Again(request, LOSS_DELAY_S, Why.LOST) if losses < MOST_LOSSES else None
    rule = spec.retry
    if rule is None or verdict.state is State.COMPLETED or not _applies(rule, verdict):
        return None
    uncounted = LOST if is_requeued else ()
    retried = sum(
        1 for attempt in attempts if not _was_continued(spec, attempt) and attempt.verdict.state not in uncounted
    )
    if retried >= rule.max or (budget_left is not None and budget_left <= 0):
        return None
    return Again(_grown(rule, request, verdict.state, most_bytes), _delay(rule, retried), Why.RETRY)


def requeues(spec: JobSpec, may_lose_nodes: bool, by_default: bool) -> bool:
    """Whether an attempt that was lost is tried again without a rule; `by_default`: so on this machine."""
    wish = requeue_wish(spec)
    return may_lose_nodes or by_default if wish is None else wish


def requeue_wish(spec: JobSpec) -> bool | None:
    """What the job itself says: `requeue` of a flow, --requeue or --no-requeue of sbatch."""
    return spec.slurm.requeue if spec.requeue is None and spec.slurm is not None else spec.requeue


def _request_after(spec: JobSpec, attempt: AttemptSummary, most_bytes: int | None) -> Request:
    if spec.retry is None or not _applies(spec.retry, attempt.verdict):
        return attempt.request
    return _grown(spec.retry, attempt.request, attempt.verdict.state, most_bytes)


def _was_continued(spec: JobSpec, attempt: AttemptSummary) -> bool:
    return attempt.verdict.state is State.CHECKPOINTED and spec.checkpoint is not None


def _applies(rule: RetryRule, verdict: Verdict) -> bool:
    if verdict.state is State.TIMEOUT and verdict.reason == DEADLINE:
        return False  # another attempt would be past the deadline from its start
    if verdict.state in rule.states:
        return True
    if verdict.state is State.CANCELLED:
        return False
    if verdict.exit is not None:
        if verdict.exit.signal and verdict.exit.signal in rule.signals:
            return True
        if not verdict.exit.signal and verdict.exit.code in rule.codes:
            return True
    word = verdict.reason.partition(":")[0]
    return verdict.reason in rule.reasons or word in rule.reasons


def _grown(rule: RetryRule, request: Request, state: State, most_bytes: int | None) -> Request:
    """What was too little grows, up to its ceiling: memory after OUT_OF_MEMORY, time after TIMEOUT, nothing else."""
    match state:
        case State.OUT_OF_MEMORY if request.mem_bytes is not None:
            ceilings = [most for most in (rule.mem_ceiling_bytes, most_bytes) if most is not None]
            mem_bytes = _grow(request.mem_bytes, rule.grow_mem, min(ceilings, default=None), MIB)
            return Request(request.cpus, request.gpus, mem_bytes, request.time_s)
        case State.TIMEOUT if request.time_s is not None:
            time_s = _grow(request.time_s, rule.grow_time, rule.time_ceiling_s, 1)
            return Request(request.cpus, request.gpus, request.mem_bytes, time_s)
        case _:
            return request


def _grow(amount: int, factor: float, ceiling: int | None, unit: int) -> int:
    """Whole units, rounded up; never less than before, never above the ceiling unless it was so before."""
    if factor <= 1.0:
        return amount
    grown = math.ceil(round(amount * factor / unit, 6)) * unit
    if ceiling is not None:
        grown = min(grown, ceiling)
    return max(grown, amount)


def _delay(rule: RetryRule, retried: int) -> float:
    if rule.backoff_s <= 0:
        return 0.0
    try:
        return min(rule.backoff_s * rule.backoff_factor**retried, max(LONGEST_DELAY_S, rule.backoff_s))
    except OverflowError:
        return max(LONGEST_DELAY_S, rule.backoff_s)
