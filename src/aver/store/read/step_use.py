"""What the steps of an attempt used, beside its script: their tasks are measured apart, each by its own witness.

Unknown is None, and makes the whole unknown: a step whose end nobody saw, or a task that was not measured. A task that
could not start used nothing, nor did a step that was cancelled before it began. Memory is that of the script and of
the steps that ran at the same time, each at its own peak: the most that they can have had together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from aver.model.reasons import JOB_LAUNCH_FAILURE
from aver.store.columns import Outcome
from aver.store.read.rows import AttemptRow

MEASURING = "witness"  # in the figures of others, those of steps are in already

STEP_USE_SQL = f"""
SELECT s.job, s.attempt, s.started_at, s.ended_at, s.tasks, s.state = 'CANCELLED' AND s.exit IS NULL, count(t.task),
    iif(sum(t.user_s IS NULL AND t.reason <> '{JOB_LAUNCH_FAILURE}'), NULL, total(t.user_s)),
    iif(sum(t.sys_s IS NULL AND t.reason <> '{JOB_LAUNCH_FAILURE}'), NULL, total(t.sys_s)),
    iif(sum(t.peak_bytes IS NULL AND t.reason <> '{JOB_LAUNCH_FAILURE}'), NULL, coalesce(sum(t.peak_bytes), 0))
FROM steps AS s LEFT JOIN tasks AS t ON t.job = s.job AND t.attempt = s.attempt AND t.step = s.step
WHERE s.job IN (SELECT id FROM jobs WHERE {{which}}) GROUP BY s.job, s.attempt, s.step ORDER BY s.job, s.attempt"""


class Used(NamedTuple):
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None


class _Step(NamedTuple):
    started_at: float
    ended_at: float
    used: Used


StepUse = Mapping[tuple[int, int], Used]  # by job and attempt: what all steps of it used
_UNKNOWN = Used(None, None, None)
Attempt = TypeVar("Attempt", AttemptRow, Outcome)


def fold_steps(rows: Iterable[Any]) -> StepUse:
    """What the rows of STEP_USE_SQL add up to."""
    found: dict[tuple[int, int], list[_Step]] = {}
    for job, attempt, started_at, ended_at, tasks, is_cancelled, ended, *used in rows:
        never_began = not ended and is_cancelled
        is_whole = ended_at is not None and (never_began or ended >= tasks)
        step = _Step(started_at, ended_at or started_at, Used(*used) if is_whole else _UNKNOWN)
        found.setdefault((job, attempt), []).append(step)
    return {which: _together(steps) for which, steps in found.items()}


def with_steps(row: Attempt, steps: StepUse) -> Attempt:
    """The attempt with what its script and its steps used."""
    used = _whole(row, steps.get((row.job, row.attempt or 0)))
    return row if used is None else row.changed(**used._asdict())


def _whole(row: AttemptRow | Outcome, steps: Used | None) -> Used | None:
    """The whole attempt's; None where the row has it already. A peak of 0 is one that the kernel had not counted."""
    if steps is None or row.source != MEASURING:
        return None
    peaks = row.peak_bytes, steps.peak_bytes
    peak = None if None in peaks else sum(peak for peak in peaks if peak is not None)
    return Used(_sum((row.user_s, steps.user_s)), _sum((row.sys_s, steps.sys_s)), peak or None)


def _together(steps: list[_Step]) -> Used:
    return Used(_sum(step.used.user_s for step in steps), _sum(step.used.sys_s for step in steps), _peak(steps))


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
