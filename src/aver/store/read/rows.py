"""The rows that readers get: typed, and honest about what is not known.

A `verdict` is there only when the row is settled and says who attests it.
"""

from __future__ import annotations

from aver.model.events import Event
from aver.model.evidence import TaskCause, Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Request, StepSpec
from aver.model.record import Record
from aver.model.states import State


class RunRow(Record):
    id: int
    name: str
    state: State
    round: int
    submitted_at: float
    ended_at: float | None
    first_job: int
    jobs: int
    is_single: bool
    user: str
    folder: str  # to show; the true one is the submission's


class JobRow(Record):
    id: int
    run: int
    name: str
    first_job: int  # of the submission or generation that made it: id - first_job is its number in that flow
    spec: int
    member: int
    state: State
    reason: str
    exit: ExitStatus | None
    verified: bool | None
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    attempt: int  # the newest; 0 before the first
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    background: bool
    derived: int | None = 0  # DerivedExitCode, raw, of the newest attempt; None: nobody saw a step's exit

    @property
    def verdict(self) -> Verdict | None:
        return _verdict(self)


class GroupRow(Record):
    """The jobs of one definition that are in one state; of a single job, its own facts."""

    first_job: int  # as of a job
    spec: int
    state: State
    jobs: int
    first: int  # the lowest number of these jobs
    name: str
    reason: str
    exit: ExitStatus | None
    started_at: float | None  # the first start
    ended_at: float | None  # the last end
    elapsed_s: float | None  # the longest


class AttemptRow(Record):
    job: int
    attempt: int
    key: str
    engine: str
    state: State
    reason: str
    exit: ExitStatus | None
    verified: bool | None
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    planned_at: float
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    node: str | None
    request: Request

    @property
    def verdict(self) -> Verdict | None:
        return _verdict(self)


class StoredEvent(Record):
    seq: int
    event: Event


class TaskRow(Record):
    job: int
    attempt: int
    step: int
    task: int
    state: State
    reason: str
    exit: ExitStatus | None
    verified: bool | None
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    because: bool
    ended_at: float | None
    started_at: float | None
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    node: str | None
    cause: TaskCause = TaskCause()

    @property
    def verdict(self) -> Verdict | None:
        return _verdict(self)


class StepRow(Record):
    job: int
    attempt: int
    step: int
    name: str
    token: str
    tasks: int
    spec: StepSpec
    started_at: float
    state: State
    reason: str
    exit: ExitStatus | None
    verified: bool | None
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    ended_at: float | None
    derived: int | None  # its share in the job's; None: it runs, or nobody saw its exit
    first_failed: int | None
    srun_code: int | None

    @property
    def verdict(self) -> Verdict | None:
        return _verdict(self)


def _verdict(row: JobRow | AttemptRow | StepRow | TaskRow) -> Verdict | None:
    if not row.state.is_settled or row.source is None or row.verified is None:
        return None
    return Verdict(row.state, row.exit, row.reason, row.verified, row.source, row.warnings, row.detail)
