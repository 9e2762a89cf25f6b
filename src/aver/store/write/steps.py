"""Steps and tasks: what their events make of the tables. Used live and in replay, as `derive` is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aver.judge.step import fold_derived, step_raw
from aver.model.codec import dumps
from aver.model.events import StepEnded, StepStarted, TaskEnded
from aver.model.states import State
from aver.store.encoding import cause_text, column_text, verdict_columns
from aver.store.write import statements as sql
from aver.store.write.statements import Statement

StepEvent = StepStarted | TaskEnded | StepEnded


def step_statements(events: Sequence[StepEvent]) -> Iterator[Statement]:
    """Steps begin before their tasks end, and tasks before their steps: kind by kind keeps the order."""
    if not events:
        return
    started = [_started_row(event) for event in events if isinstance(event, StepStarted)]
    tasks = [_task_row(event) for event in events if isinstance(event, TaskEnded)]
    ended = [event for event in events if isinstance(event, StepEnded)]
    if started:
        yield Statement(sql.PUT_STEPS, dumps(started))
    if tasks:
        yield Statement(sql.PUT_TASKS, dumps(tasks))
        heard_of: dict[tuple[int, int, int], int] = {}
        for job, attempt, step, task, *_ in tasks:
            heard_of[job, attempt, step] = max(task + 1, heard_of.get((job, attempt, step), 1))
        yield Statement(sql.WIDEN_STEPS, dumps([(*which, count) for which, count in heard_of.items()]))
    if ended:
        yield Statement(sql.END_STEPS, dumps([_ended_row(event) for event in ended]))
        shares: dict[tuple[int, int], list[int | None]] = {}
        for event in ended:
            shares.setdefault((event.job, event.attempt), []).append(_share(event))
        yield Statement(sql.RAISE_DERIVED, dumps([(*key, fold_derived(raws)) for key, raws in shares.items()]))


def _share(event: StepEnded) -> int | None:
    """What the step adds to DerivedExitCode. Before schema 4, events have 0 also where nobody saw the step's exit."""
    if event.derived != 0 or event.verdict.exit is not None or event.verdict.state is State.CANCELLED:
        return event.derived
    return step_raw(None, event.verdict.state)


def _started_row(event: StepStarted) -> tuple[Any, ...]:
    spec = event.spec
    return (
        event.job, event.attempt, event.step, column_text(spec.name), event.token, spec.tasks,
        dumps(spec), event.at,
    )  # fmt: skip


def _task_row(event: TaskEnded) -> tuple[Any, ...]:
    verdict, usage = event.verdict, event.usage
    times: tuple[Any, ...] = (event.at, None, None, None, None, None, None)
    if usage is not None:
        ended_at = event.at if usage.elapsed_s is None else usage.started_at + usage.elapsed_s
        node = None if usage.node is None else column_text(usage.node)
        times = (
            ended_at, usage.started_at, usage.elapsed_s, usage.user_s, usage.sys_s, usage.peak_bytes, node,
        )  # fmt: skip
    return (
        event.job, event.attempt, event.step, event.task, verdict.state, column_text(verdict.reason),
        *verdict_columns(verdict.state, verdict), int(event.because), *times, cause_text(event.cause),
    )  # fmt: skip


def _ended_row(event: StepEnded) -> tuple[Any, ...]:
    verdict = event.verdict
    return (
        event.job, event.attempt, event.step, verdict.state, column_text(verdict.reason),
        *verdict_columns(verdict.state, verdict), event.at, _share(event), event.first_failed, event.srun_code,
    )  # fmt: skip
