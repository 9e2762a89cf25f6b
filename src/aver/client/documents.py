"""The JSON document of a job and of a run: the same for `--json` and for notifications.

`docs/en/reference/json.md` describes the keys. Unknown is None.
"""

from __future__ import annotations

from collections.abc import Mapping

from aver.judge.run import return_code
from aver.model.exit import ExitStatus
from aver.model.exit_text import raw_text
from aver.model.reasons import NONE, parse_from_run
from aver.model.record import Record
from aver.model.states import State
from aver.store.read.rows import JobRow, RunRow


class ExitFacts(Record):
    """`text` is code:signal; `return_code` is what a shell would show."""

    text: str
    code: int
    signal: int
    core_dumped: bool
    return_code: int


class JobFacts(Record):
    id: int
    run: int
    name: str
    address: str
    state: str
    is_settled: bool
    reason: str | None  # None: there is none, as of a success
    exit: ExitFacts | None
    return_code: int | None
    verified: bool | None  # None while nobody has said anything
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    attempt: int
    is_background: bool
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    from_run: int | None  # taken over: the run and job that did the work
    from_job: int | None
    derived_exit: str | None  # DerivedExitCode, the worst of its steps; 0:0 without any, null if one is unknown
    peak_bytes: int | None  # of its newest attempt, with its steps


class RunFacts(Record):
    id: int
    name: str
    state: str
    is_settled: bool
    round: int
    is_single: bool
    user: str
    folder: str
    submitted_at: float
    ended_at: float | None
    first_job: int
    jobs: int
    counts: dict[str, int]  # state -> number of jobs
    unselected: tuple[str, ...]  # jobs of the flow that are not in this run
    engines: tuple[str, ...]  # of its jobs


def known_reason(reason: str) -> str | None:
    """None where the store has Slurm's word for no reason."""
    return None if reason in ("", NONE) else reason


def exit_facts(status: ExitStatus | None) -> ExitFacts | None:
    if status is None:
        return None
    return ExitFacts(str(status), status.code, status.signal, status.core, status.shell_code)


def job_facts(
    job: JobRow, is_single: bool, step_warnings: tuple[str, ...] = (), peak_bytes: int | None = None
) -> JobFacts:
    verdict = job.verdict
    origin = parse_from_run(job.reason)
    return JobFacts(
        id=job.id,
        run=job.run,
        name=job.name,
        address=str(job.id) if is_single else f"{job.run}/{job.name}",
        state=job.state.value,
        is_settled=job.state.is_settled,
        reason=known_reason(job.reason),
        exit=exit_facts(job.exit),
        return_code=None if verdict is None else return_code(verdict.state, verdict.exit),
        verified=job.verified,
        source=job.source,
        warnings=(*job.warnings, *step_warnings),
        detail=job.detail,
        attempt=job.attempt,
        is_background=job.background,
        submitted_at=job.submitted_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        elapsed_s=job.elapsed_s,
        from_run=None if origin is None else origin.run,
        from_job=None if origin is None else origin.job,
        derived_exit=None if job.derived is None else raw_text(job.derived),
        peak_bytes=peak_bytes,
    )


def run_facts(run: RunRow, counts: Mapping[State, int]) -> RunFacts:
    return RunFacts(
        id=run.id,
        name=run.name,
        state=run.state.value,
        is_settled=run.state.is_settled,
        round=run.round,
        is_single=run.is_single,
        user=run.user,
        folder=run.folder,
        submitted_at=run.submitted_at,
        ended_at=run.ended_at,
        first_job=run.first_job,
        jobs=run.jobs,
        counts={state.value: count for state, count in counts.items()},
        unselected=run.unselected,
        engines=run.engines,
    )


class JobPreview(Record):
    """A job as it would run. `jobs`: how many members it has. None: unlimited."""

    name: str
    jobs: int
    command: str
    needs: tuple[str, ...]
    engine: str
    cpus: int | float
    gpus: int
    mem_bytes: int | None
    time_s: int | None


class Preview(Record):
    """What `submit --preview` would submit. `definitions` are the first ones, `left_out` the number of others."""

    name: str
    jobs: int
    folder: str
    definitions: tuple[JobPreview, ...]
    left_out: int
    ignored: tuple[str, ...]
    unselected: tuple[str, ...]
