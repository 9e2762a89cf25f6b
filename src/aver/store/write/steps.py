"""Steps and tasks: what their events make of the tables. Used live and in replay, as `derive` is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aver.judge.step import fold_derived, step_raw
from aver.model.codec import dumps
from aver.model.events import StepEnded, StepStarted, TaskEnded
from aver.model.evidence import Verdict
from aver.model.states import State
from aver.store.encoding import cause_text, column_text, measured_columns, verdict_columns
from aver.store.write import statements as sql
from aver.store.write.statements import Statement, Values, with_rows

StepEvent = StepStarted | TaskEnded | StepEnded


def step_statements(events: Sequence[StepEvent]) -> Iterator[Statement]:
    """Steps begin before their tasks end, and tasks before their steps: kind by kind keeps the order."""
    if not events:
        return
    started = [_started_row(event) for event in events if isinstance(event, StepStarted)]
    tasks = [_task_row(event) for event in events if isinstance(event, TaskEnded)]
    ended = [event for event in events if isinstance(event, StepEnded)]
    if started:
        yield from with_rows(sql.put_steps, started)
    if tasks:
        yield from with_rows(sql.put_tasks, tasks)
        heard_of: dict[tuple[int, int, int], int] = {}
        for one in tasks:
            which = one["job"], one["attempt"], one["step"]
            heard_of[which] = max(one["task"] + 1, heard_of.get(which, 1))
        widths = [
            {"job": job, "attempt": attempt, "step": step, "tasks": count}
            for (job, attempt, step), count in heard_of.items()
        ]
        yield from with_rows(sql.widen_steps, widths)
    if ended:
        yield from with_rows(sql.end_steps, [_ended_row(event) for event in ended])
        which_ended = [{"job": event.job, "attempt": event.attempt, "step": event.step} for event in ended]
        yield from with_rows(sql.measure_steps, which_ended)
        shares: dict[tuple[int, int], list[int | None]] = {}
        for event in ended:
            shares.setdefault((event.job, event.attempt), []).append(_share(event))
        raised = [
            {"job": job, "attempt": attempt, "derived": fold_derived(raws)} for (job, attempt), raws in shares.items()
        ]
        yield from with_rows(sql.raise_derived, raised)


def _share(event: StepEnded) -> int | None:
    """What the step adds to DerivedExitCode. Before schema 4, events have 0 also where nobody saw the step's exit."""
    if event.derived != 0 or event.verdict.exit is not None or event.verdict.state is State.CANCELLED:
        return event.derived
    return step_raw(None, event.verdict.state)


def _started_row(event: StepStarted) -> Values:
    return {
        "job": event.job,
        "attempt": event.attempt,
        "step": event.step,
        "name": column_text(event.spec.name),
        "token": column_text(event.token),
        "tasks": event.spec.tasks,
        "spec": dumps(event.spec),
        "started_at": event.at,
    }


def _task_row(event: TaskEnded) -> Values:
    usage = event.usage
    ended_at = event.at if usage is None or usage.elapsed_s is None else usage.started_at + usage.elapsed_s
    return {
        "job": event.job,
        "attempt": event.attempt,
        "step": event.step,
        "task": event.task,
        **_verdict(event.verdict),
        "because": int(event.because),
        "ended_at": ended_at,
        **measured_columns(usage),
        "cause": cause_text(event.cause),
    }


def _ended_row(event: StepEnded) -> Values:
    return {
        "job": event.job,
        "attempt": event.attempt,
        "step": event.step,
        **_verdict(event.verdict),
        "ended_at": event.at,
        "derived": _share(event),
        "first_failed": event.first_failed,
        "srun_code": event.srun_code,
    }


def _verdict(verdict: Verdict) -> Values:
    return {"state": verdict.state, "reason": column_text(verdict.reason), **verdict_columns(verdict.state, verdict)}
