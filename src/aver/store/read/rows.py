"""The rows that readers get: typed, and honest about what is not known.

Each is its table's columns (`store.columns`) with those that are decoded. A `verdict` is there only when the row is
settled and says who attests it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aver.model.events import Event, JobsEnded
from aver.model.evidence import TaskCause, Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Request, StepSpec
from aver.model.record import Record
from aver.model.states import State
from aver.store.columns import AttemptColumns, JobColumns, Row, RunColumns, StepColumns, TaskColumns


class RunRow(RunColumns):
    __slots__ = ()
    state: State
    is_single: bool
    unselected: tuple[str, ...]  # jobs of the flow that are not in this run
    engines: tuple[str, ...]  # of its jobs; empty in a store of before


class _Judged(Row):
    __slots__ = ()
    state: State
    reason: str
    exit: ExitStatus | None
    verified: bool | None
    source: str | None
    warnings: tuple[str, ...]
    detail: str

    @property
    def verdict(self) -> Verdict | None:
        if not self.state.is_settled or self.source is None or self.verified is None:
            return None
        return Verdict(self.state, self.exit, self.reason, self.verified, self.source, self.warnings, self.detail)


class JobRow(JobColumns, _Judged):
    __slots__ = ()
    background: bool


class AttemptRow(AttemptColumns, _Judged):
    __slots__ = ()
    request: Request


class StepRow(StepColumns, _Judged):
    __slots__ = ()
    spec: StepSpec


class TaskRow(TaskColumns, _Judged):
    __slots__ = ()
    because: bool
    cause: TaskCause


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


class StoredEvent(Record):
    seq: int
    event: Event


def each_move(stored: Iterable[StoredEvent], after: int = 0) -> Iterator[StoredEvent]:
    """The same events, with a JobMoved for each of the jobs that ended together; those numbered above `after`."""
    for one in stored:
        event = one.event
        if isinstance(event, JobsEnded):
            for seq in range(max(one.seq - event.count, after) + 1, one.seq + 1):
                yield StoredEvent(seq, event.move_of(event.last - one.seq + seq))
        else:
            yield one


def move_of(stored: StoredEvent, job: int) -> StoredEvent | None:
    """The job's own move, if it is one of the jobs that ended together."""
    event = stored.event
    if not isinstance(event, JobsEnded) or not event.first <= job <= event.last:
        return None
    return StoredEvent(stored.seq - event.last + job, event.move_of(job))
