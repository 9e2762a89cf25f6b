"""Steps of a job as documents: the tasks of each, their summary, and the warning that a step's memory deserves."""

from __future__ import annotations

from collections.abc import Iterable

from aver.cli.output import documents as doc
from aver.cli.session import Session
from aver.client.documents import exit_facts, known_reason
from aver.judge.step import Lost, Running, Task, TaskEnd, not_begun, task_summary
from aver.store.read.rows import JobRow, StepRow, TaskRow
from aver.store.read.step_warnings import step_warnings


def warnings_of_steps(session: Session, jobs: Iterable[JobRow]) -> dict[int, tuple[str, ...]]:
    """Warnings by job: steps of the newest attempt that were out of memory, or whose end nobody saw."""
    reader = session.reader
    return {} if reader is None else step_warnings(reader, jobs)


def steps_facts(session: Session, job: JobRow, step: int | None = None) -> tuple[doc.StepFacts, ...]:
    """The steps of the newest attempt, or the one of this number."""
    reader = session.found_reader(str(job.id))
    rows = [row for row in reader.steps(job.id, job.attempt) if step in (None, row.step)]
    return tuple(_step(row, reader.tasks(job.id, row.attempt, row.step)) for row in rows)


def _step(row: StepRow, ended: list[TaskRow]) -> doc.StepFacts:
    address = f"{row.job}.{row.step}"
    return doc.StepFacts(
        step=row.step,
        address=address,
        attempt=row.attempt,
        name=row.name,
        state=row.state.value,
        is_settled=row.state.is_settled,
        reason=known_reason(row.reason),
        exit=exit_facts(row.exit),
        srun_code=row.srun_code,
        first_failed=row.first_failed,
        tasks=row.tasks,
        command=row.spec.args,
        started_at=row.started_at,
        ended_at=row.ended_at,
        summary=_summary(address, row, ended),
        task_ends=tuple(_task(task) for task in ended),
    )


def _task(row: TaskRow) -> doc.TaskFacts:
    return doc.TaskFacts(
        task=row.task,
        state=row.state.value,
        reason=known_reason(row.reason),
        exit=exit_facts(row.exit),
        because=row.because,
        detail=row.detail,
        started_at=row.started_at,
        ended_at=row.ended_at,
        elapsed_s=row.elapsed_s,
        user_s=row.user_s,
        sys_s=row.sys_s,
        peak_bytes=row.peak_bytes,
        node=row.node,
    )


def _summary(address: str, step: StepRow, ended: list[TaskRow]) -> str:
    """A task without a row still runs while the step does; afterwards nobody saw its end."""
    rows = {row.task: row for row in ended}
    missing: TaskEnd = Lost() if step.state.is_settled else Running()
    return task_summary(
        address,
        [
            Task(rank, missing) if (row := rows.get(rank)) is None else Task(rank, _end(row), row.ended_at, row.because)
            for rank in range(step.tasks)
        ],
    )


def _end(row: TaskRow) -> TaskEnd:
    if row.exit is not None:
        return row.exit
    return row.cause.launch or not_begun(row.state, row.source or "") or Lost()
