"""What the steps of an attempt used, beside its script: their tasks are measured apart, each by its own witness.

Unknown is None, and makes the whole unknown: a step whose end nobody saw, or a task that was not measured. A task that
could not start used nothing, nor did a step that was cancelled before it began. Memory is that of the script and of
the steps that ran at the same time, each at its own peak: the most that they can have had together. A limit of the job
holds for all of them, so this is no more than the limit, unless one alone was measured over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from aver.model.reasons import JOB_LAUNCH_FAILURE
from aver.store.columns import Outcome
from aver.store.read.rows import AttemptRow

MEASURING = "witness"  # in the figures of others, those of steps are in already

STEP_USE_SQL = f"""
SELECT s.job, s.attempt, s.started_at, s.ended_at, s.tasks, s.state = 'CANCELLED' AND s.exit IS NULL, count(t.task),
    iif(sum(t.user_s IS NULL AND t.reason <> '{JOB_LAUNCH_FAILURE}'), NULL, total(t.user_s)),
    iif(sum(t.sys_s IS NULL AND t.reason <> '{JOB_LAUNCH_FAILURE}'), NULL, total(t.sys_s)),
    iif(sum(t.peak_bytes IS NULL AND t.reason <> '{JOB_LAUNCH_FAILURE}'), NULL, coalesce(sum(t.peak_bytes), 0)),
    coalesce(max(t.is_cpu_least), 0), coalesce(max(t.peak_bytes), 0)
FROM steps AS s LEFT JOIN tasks AS t ON t.job = s.job AND t.attempt = s.attempt AND t.step = s.step
WHERE s.job IN (SELECT id FROM jobs WHERE {{which}}) GROUP BY s.job, s.attempt, s.step ORDER BY s.job, s.attempt"""


class Used(NamedTuple):
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    is_cpu_least: bool


class _Step(NamedTuple):
    started_at: float
    ended_at: float
    used: Used
    largest_bytes: int  # of one task


class _Steps(NamedTuple):
    used: Used
    largest_bytes: int


StepUse = Mapping[tuple[int, int], _Steps]  # by job and attempt: what all steps of it used
_UNKNOWN = Used(None, None, None, False)
Attempt = TypeVar("Attempt", AttemptRow, Outcome)


def fold_steps(rows: Iterable[Any]) -> StepUse:
    """What the rows of STEP_USE_SQL add up to."""
    found: dict[tuple[int, int], list[_Step]] = {}
    for job, attempt, started_at, ended_at, tasks, is_cancelled, ended, user_s, sys_s, peak, is_least, largest in rows:
        never_began = not ended and is_cancelled
        is_whole = ended_at is not None and (never_began or ended >= tasks)
        used = Used(user_s, sys_s, peak, bool(is_least)) if is_whole else _UNKNOWN
        step = _Step(started_at, ended_at or started_at, used, largest)
        found.setdefault((job, attempt), []).append(step)
    return {which: _together(steps) for which, steps in found.items()}


def with_steps(row: Attempt, steps: StepUse, limit_of: Callable[[Attempt], int | None]) -> Attempt:
    """The attempt with what its script and its steps used; `limit_of` says which limit of memory it had."""
    found = steps.get((row.job, row.attempt or 0))
    if found is None or row.source != MEASURING:
        return row
    used = found.used
    peak = _bounded(row.peak_bytes, found, limit_of(row))
    return row.changed(
        user_s=_sum((row.user_s, used.user_s)),
        sys_s=_sum((row.sys_s, used.sys_s)),
        is_cpu_least=bool(row.is_cpu_least) or used.is_cpu_least,
        peak_bytes=peak,
    )


def _bounded(script_bytes: int | None, steps: _Steps, limit_bytes: int | None) -> int | None:
    """The peak of the whole attempt. One of 0 is one that the kernel had not counted."""
    if script_bytes is None or steps.used.peak_bytes is None:
        return None
    peak = script_bytes + steps.used.peak_bytes
    if limit_bytes is not None:
        peak = min(peak, max(limit_bytes, script_bytes, steps.largest_bytes))
    return peak or None


def _together(steps: list[_Step]) -> _Steps:
    users, systems = _sum(step.used.user_s for step in steps), _sum(step.used.sys_s for step in steps)
    is_least = any(step.used.is_cpu_least for step in steps)
    return _Steps(Used(users, systems, _peak(steps), is_least), max(step.largest_bytes for step in steps))


def _sum(parts: Iterable[float | None]) -> float | None:
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _peak(steps: list[_Step]) -> int | None:
    """The most that steps which ran at the same time can have had."""
    highest = 0
    for one in steps:
        beside = [other.used.peak_bytes for other in steps if other.started_at <= one.started_at <= other.ended_at]
        if None in beside:
            return None
        highest = max(highest, sum(peak for peak in beside if peak is not None))
    return highest
