"""From events to changes of the derived tables: the one place, used live and in replay.

Pure: it yields statements and runs none. Changes of one row within a batch are merged before they are written,
and the result does not depend on how the events were cut into batches.

A job that ends before an attempt that was only planned has no such attempt: its row goes, and its number is free.

A job's row follows its newest attempt: what is said about an older one changes that attempt's row only. A time
that is unknown never replaces one that is known, but for a new attempt and for PENDING, which start afresh. What
the steps of an attempt made of DerivedExitCode stays until that attempt is over: a queue that calls it PENDING after
its steps have been heard of takes nothing back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, assert_never

from aver.model.codec import dumps
from aver.model.events import (
    AttemptPlanned,
    Event,
    Fingerprinted,
    FlowReplaced,
    GpusGiven,
    JobMoved,
    JobsEnded,
    JobsGenerated,
    Observed,
    PersonAsked,
    PoolSized,
    RunMoved,
    RunPruned,
    RunSubmitted,
)
from aver.model.evidence import Verdict
from aver.model.job import FlowSpec, JobSpec
from aver.model.record import Mutable, field
from aver.model.states import UNSETTLED, State
from aver.plan.matrix import FlowIndex
from aver.store.columns import TIMES
from aver.store.encoding import NO_VERDICT, NOT_MEASURED, column_text, measured_columns, verdict_columns
from aver.store.write import statements as sql
from aver.store.write.statements import Statement, Values, with_rows, with_values
from aver.store.write.steps import StepEvent, step_statements

JOBS_PER_STATEMENT = 1000
NEW_JOB = ("id", "run", "name", "first_job", "spec", "member", "reason", "submitted_at", "background")


class _Change(Mutable):
    """What one or more events make of a job's or an attempt's row."""

    state: State | None  # None: the row is as before but for `attempt`
    reason: str
    verdict: Values  # by `columns.VERDICT`
    keeps_end: bool  # an end that is in the row stays; `ended_at` is for a row without one
    ended_at: float | None
    usage: Values | None = None  # by `columns.MEASURED`; a job has only `columns.TIMES` of them
    fresh: bool = False  # forget the times that are in the row
    is_over: bool = False  # of a job: its attempt so far is over, and so is the count of its steps
    attempt: int | None = None  # of a job: the attempt that this is about

    def then(self, later: _Change) -> None:
        """Become this change followed by a later one."""
        if later.state is None:
            return
        self.state, self.reason, self.verdict = later.state, later.reason, later.verdict
        if not later.keeps_end:
            self.keeps_end, self.ended_at = False, later.ended_at
        elif self.ended_at is None:
            self.ended_at = later.ended_at
        self.is_over = self.is_over or later.is_over
        if later.fresh:
            self.fresh, self.usage = True, later.usage
        elif later.usage is not None:
            known = {name: value for name, value in later.usage.items() if value is not None}
            self.usage = later.usage if self.usage is None else self.usage | known


class _Pending(Mutable):
    """Merged changes that are not yet statements."""

    runs: list[Values] = field(default_factory=list)
    flows: list[tuple[float, int, int, FlowSpec]] = field(default_factory=list)  # at, run, first job, its jobs
    grown: list[Values] = field(default_factory=list)
    engines: list[Values] = field(default_factory=list)  # that later definitions of a run name
    touched: set[int] = field(default_factory=set)  # runs whose rows have changes below
    moves: dict[int, RunMoved] = field(default_factory=dict)
    jobs: list[dict[int, _Change]] = field(default_factory=list)  # wave n holds each job's n-th change
    waves: dict[int, int] = field(default_factory=dict)
    planned: dict[tuple[int, int], AttemptPlanned] = field(default_factory=dict)
    attempts: dict[tuple[int, int], _Change] = field(default_factory=dict)
    ended_unstarted: set[int] = field(default_factory=set)  # jobs; what is planned of them is withdrawn

    def add_job(self, job: int, change: _Change) -> None:
        wave = self.waves.get(job)
        if wave is not None:
            last = self.jobs[wave][job]
            if last.attempt == change.attempt:
                last.then(change)
                return
            wave += 1
        else:
            wave = 0
        if wave == len(self.jobs):
            self.jobs.append({})
        self.jobs[wave][job] = change
        self.waves[job] = wave

    def add_attempt(self, key: tuple[int, int], change: _Change) -> None:
        last = self.attempts.get(key)
        if last is None:
            self.attempts[key] = change
        else:
            last.then(change)


def statements(events: Iterable[Event]) -> Iterator[Statement]:
    """Yield, in order, the statements that bring the derived tables from before these events to after them."""
    pending = _Pending()
    steps: list[StepEvent] = []
    for event in events:
        if isinstance(event, StepEvent):
            if not steps:
                yield from _flush(pending)
                pending = _Pending()
            steps.append(event)
            continue
        yield from step_statements(steps)
        steps = []
        if isinstance(event, (Observed, AttemptPlanned)) and event.job in pending.ended_unstarted:
            yield from _flush(pending)
            pending = _Pending()
        match event:
            case Observed():
                pending.touched.add(event.run)
                _observe(pending, event)
            case AttemptPlanned():
                pending.touched.add(event.run)
                _plan(pending, event)
            case JobMoved():
                pending.touched.add(event.run)
                change = _job_change(event.at, event.state, event.reason, event.verdict)
                change.is_over = change.fresh
                pending.add_job(event.job, change)
                if event.state not in UNSETTLED:
                    pending.ended_unstarted.add(event.job)
            case JobsEnded():
                yield from _flush(pending)
                pending = _Pending()
                yield from _end_unstarted(event)
            case RunMoved():
                pending.touched.add(event.run)
                pending.moves[event.run] = event
            case RunSubmitted() | JobsGenerated():
                if event.run in pending.touched:
                    yield from _flush(pending)
                    pending = _Pending()
                _submit(pending, event)
            case RunPruned():
                yield from _flush(pending)
                pending = _Pending()
                for text in sql.PRUNE:
                    yield Statement(text, (event.run,))
            case FlowReplaced():
                _name_engines(pending, event.run, event.flow)
            case PersonAsked() | Fingerprinted() | GpusGiven() | PoolSized():
                pass
            case _:
                assert_never(event)
    yield from _flush(pending)
    yield from step_statements(steps)


def _end_unstarted(event: JobsEnded) -> Iterator[Statement]:
    """The same as a JobMoved of each job, in two statements."""
    verdict = event.verdict
    columns = {"state": verdict.state, "reason": column_text(verdict.reason), **verdict_columns(verdict.state, verdict)}
    return sql.end_range(event.run, event.first, event.last, event.at, columns)


def _ending(state: State, at: float, known: float | None) -> tuple[bool, float | None]:
    """Return whether an end that is in the row stays, and the end otherwise."""
    if state in UNSETTLED:
        return False, None
    return (True, at) if known is None else (False, known)


def _job_change(
    at: float, state: State, reason: str, verdict: Verdict | None, ended_at: float | None = None
) -> _Change:
    keeps_end, ended = _ending(state, at, ended_at)
    return _Change(
        state, column_text(reason), verdict_columns(state, verdict), keeps_end, ended, fresh=state is State.PENDING
    )


def _observe(pending: _Pending, event: Observed) -> None:
    usage = event.usage
    ended_at = None
    if usage is not None and usage.elapsed_s is not None:
        ended_at = usage.started_at + usage.elapsed_s
    measured = None if usage is None else measured_columns(usage)
    keeps_end, ended = _ending(event.state, event.at, ended_at)
    change = _Change(
        event.state, column_text(event.reason), verdict_columns(event.state, event.verdict), keeps_end, ended, measured
    )
    pending.add_attempt((event.job, event.attempt), change)

    if event.job_state is None and event.job_reason is None and event.state is not State.PENDING:
        job = _Change(change.state, change.reason, change.verdict, keeps_end, ended)
    else:
        state = event.state if event.job_state is None else event.job_state
        reason = event.reason if event.job_reason is None else event.job_reason
        job = _job_change(event.at, state, reason, event.verdict, ended_at)
    job.attempt = event.attempt
    job.is_over = job.fresh and event.state not in UNSETTLED
    if not job.fresh:
        job.usage = measured
    pending.add_job(event.job, job)


def _plan(pending: _Pending, event: AttemptPlanned) -> None:
    key = (event.job, event.attempt)
    pending.planned[key] = event
    pending.attempts.pop(key, None)  # the row is made anew
    if event.attempt > 1:  # late news of older attempts is no news of the job any more
        pending.add_job(event.job, _Change(None, "", NO_VERDICT, True, None, attempt=event.attempt))


def _submit(pending: _Pending, event: RunSubmitted | JobsGenerated) -> None:
    if isinstance(event, JobsGenerated):
        flow = event.flow
        count = FlowIndex(flow).count
        pending.grown.append({"run": event.run, "jobs": count})
        _name_engines(pending, event.run, flow)
    else:
        flow = event.submission.flow
        count = FlowIndex(flow).count
        origin = event.submission.origin
        pending.runs.append(
            {
                "id": event.run,
                "name": column_text(flow.name),
                "submitted_at": event.at,
                "first_job": event.first_job,
                "jobs": count,
                "is_single": int(flow.is_single),
                "user": column_text(origin.user),
                "folder": column_text(origin.folder),
                "key": column_text(event.submission.key) or None,
                "unselected": dumps(flow.unselected) if flow.unselected else None,
                "engines": dumps(sorted({spec.engine or event.submission.engine for spec in flow.jobs})),
            }
        )
    pending.flows.append((event.at, event.run, event.first_job, flow))


def _name_engines(pending: _Pending, run: int, flow: FlowSpec) -> None:
    """Later definitions add the engines that they name; the others have their run's, which the row has."""
    pending.engines += [
        {"run": run, "engine": name} for name in {spec.engine for spec in flow.jobs} if name is not None
    ]


def _first_reason(spec: JobSpec) -> str:
    if spec.hold:
        return "JobHeldUser"
    if spec.needs.all_of or spec.needs.any_of:
        return "Dependency"
    return "BeginTime" if spec.begin_at is not None else "Priority"


def _job_rows(flows: Iterable[tuple[float, int, int, FlowSpec]]) -> Iterator[tuple[Any, ...]]:
    """By NEW_JOB."""
    for at, run, first_job, flow in flows:
        index = FlowIndex(flow)
        names = index.names()
        for number, spec in enumerate(flow.jobs):
            reason, background = _first_reason(spec), int(spec.background)
            for member, job in enumerate(index.jobs_of(number)):
                name = column_text(next(names))
                yield first_job + job, run, name, first_job, number, member, reason, at, background


def _job_row(job: int, change: _Change) -> Values:
    usage = change.usage or NOT_MEASURED
    return {
        "job": job,
        "attempt": change.attempt,
        **_changed_columns(change),
        "fresh": int(change.fresh),
        "is_over": int(change.is_over),
        **{name: usage[name] for name in TIMES},
    }


def _attempt_row(key: tuple[int, int], change: _Change) -> Values:
    job, attempt = key
    return {"job": job, "attempt": attempt, **_changed_columns(change), **(change.usage or NOT_MEASURED)}


def _changed_columns(change: _Change) -> Values:
    return {
        "state": change.state,
        "reason": change.reason,
        **change.verdict,
        "keeps_end": int(change.keeps_end),
        "ended_at": change.ended_at,
    }


def _planned_row(event: AttemptPlanned) -> Values:
    return {
        "job": event.job,
        "attempt": event.attempt,
        "key": column_text(event.key),
        "engine": column_text(event.engine),
        "request": dumps(event.request),
        "planned_at": event.at,
    }


def _flush(pending: _Pending) -> Iterator[Statement]:
    if pending.runs:
        yield from with_rows(sql.insert_runs, pending.runs)
    rows = _job_rows(pending.flows)
    while chunk := list(islice(rows, JOBS_PER_STATEMENT)):
        yield from with_values(sql.insert_jobs(NEW_JOB), chunk)
        yield Statement(sql.RAISE_NEXT_ID, (max(chunk)[0] + 1,))
    for run in pending.runs:
        yield Statement(sql.RAISE_NEXT_ID, (run["id"] + 1,))
    if pending.grown:
        yield from with_rows(sql.grow_runs, pending.grown)
    if pending.engines:
        yield from with_rows(sql.add_engines, pending.engines)
    for wave in pending.jobs:
        moved = [_job_row(job, change) for job, change in wave.items() if change.state is not None]
        raised = [{"job": job, "attempt": change.attempt} for job, change in wave.items() if change.state is None]
        if moved:
            yield from with_rows(sql.update_jobs, moved)
        if raised:
            yield from with_rows(sql.raise_attempts, raised)
    if pending.planned:
        yield from with_rows(sql.put_attempts, [_planned_row(event) for event in pending.planned.values()])
    if pending.attempts:
        yield from with_rows(sql.update_attempts, [_attempt_row(*one) for one in pending.attempts.items()])
    if pending.ended_unstarted:
        for text in sql.WITHDRAW:
            yield Statement(text, (dumps(sorted(pending.ended_unstarted)),))
    if pending.moves:
        moves = [
            {
                "run": move.run,
                "state": move.state,
                "round": move.round,
                "ended_at": None if move.state in UNSETTLED else move.at,
            }
            for move in pending.moves.values()
        ]
        yield from with_rows(sql.update_runs, moves)
