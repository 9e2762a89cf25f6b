"""The columns of each table, declared once: writing, reading and Slurm's commands all use these names.

A class lists the columns that are read as they are stored. `read.rows` adds the columns that are decoded (a state, an
exit); `LightJob`, `LightStep` and `Outcome` have them undecoded. SELECTs are made from the names, so that no place
depends on an order.

Slurm's commands import this module, so it imports nothing that is slow to import (`typing`, `dataclasses`, msgspec).
"""

from __future__ import annotations

from operator import itemgetter

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar, Self

    _Values = tuple[Any, ...]
else:
    _Values = tuple

VERDICT = ("exit", "verified", "source", "warnings", "detail")
TIMES = ("started_at", "elapsed_s")
MEASURED = (*TIMES, "user_s", "sys_s", "peak_bytes", "node", "is_cpu_least")  # of attempts and tasks; fields of `Usage`


class Row(_Values):
    """A row as a tuple whose values have the names of the columns that the class and its bases annotate."""

    __slots__ = ()
    columns: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        names: dict[str, None] = {}
        for base in reversed(cls.__mro__):
            if base is not Row:
                names.update(dict.fromkeys(getattr(base, "__annotations__", ())))
        cls.columns = tuple(names)
        for place, name in enumerate(names):
            setattr(cls, name, property(itemgetter(place)))

    def changed(self, **values: Any) -> Self:
        """The row with other values in some columns."""
        kept = [values.pop(name, value) for name, value in zip(self.columns, self, strict=True)]
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")
        return type(self)(kept)

    def __repr__(self) -> str:
        pairs = zip(self.columns, self, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


class Measured(Row):
    """What a process used: the same columns for attempts and tasks."""

    __slots__ = ()
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    node: str | None
    is_cpu_least: int | None  # 1: children that nobody waited for may have used more CPU time


class RunColumns(Row):
    __slots__ = ()
    id: int
    name: str
    round: int
    submitted_at: float
    ended_at: float | None
    first_job: int
    jobs: int
    user: str
    folder: str  # to show; the true one is the submission's
    key: str | None  # that its submitter gave it


class JobColumns(Row):
    __slots__ = ()
    id: int
    run: int
    name: str
    first_job: int  # of the submission or generation that made it: id - first_job is its number in that flow
    spec: int
    member: int
    reason: str
    source: str | None
    attempt: int  # the newest; 0 before the first
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    derived: int | None  # DerivedExitCode, raw, of the newest attempt; None: nobody saw a step's exit


class AttemptColumns(Measured):
    __slots__ = ()
    job: int
    attempt: int
    key: str
    engine: str
    reason: str
    source: str | None
    planned_at: float


class StepColumns(Row):
    __slots__ = ()
    job: int
    attempt: int
    step: int
    name: str
    token: str
    tasks: int
    started_at: float
    reason: str
    source: str | None
    ended_at: float | None
    derived: int | None  # its share in the job's; None: it runs, or nobody saw its exit
    first_failed: int | None
    srun_code: int | None


class TaskColumns(Measured):
    __slots__ = ()
    job: int
    attempt: int
    step: int
    task: int
    reason: str
    source: str | None


class LightJob(Measured):
    """A job with its newest attempt, or one of its earlier attempts."""

    __slots__ = ()
    id: int
    run: int
    name: str
    first_job: int
    spec: int
    member: int
    submitted_at: float
    newest: int
    state: str
    reason: str
    exit: int | None
    warnings: str | None  # a JSON list
    derived: int | None  # None: nobody saw a step's exit; of an earlier attempt: to be worked out from the steps
    is_earlier: int  # 1: one of the job's attempts, and not the job as it is now
    attempt: int | None
    attempt_state: str | None
    request: str | None
    planned_at: float | None


class LightStep(StepColumns):
    """A step with what its ended tasks used together."""

    __slots__ = ()
    state: str
    exit: int | None
    spec: str
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    peak_task: int | None
    peak_mean: float | None
    is_cpu_least: int | None  # of one of its tasks
    ended_tasks: int


class Outcome(Measured):
    """A job and one of its attempts, for reports over whole runs: a run of 100,000 jobs is read in half a second.

    `job_…` is what the job's own row says; the rest is the attempt's, and None for a job that has no attempt. States
    are their words as stored, which compare with `State` as they are; `exit` is a raw wait status, `request` and
    `warnings` are JSON as stored.
    """

    __slots__ = ()
    job: int
    name: str
    first_job: int
    spec: int
    member: int
    job_state: str
    job_reason: str
    job_exit: int | None
    job_verified: int | None
    job_source: str | None
    job_warnings: str | None
    job_detail: str | None
    job_ended_at: float | None
    attempt: int | None
    engine: str | None
    state: str | None
    reason: str | None
    exit: int | None
    verified: int | None
    source: str | None
    warnings: str | None
    detail: str | None
    request: str | None


def select(columns: Iterable[str], table: str = "") -> str:
    """The columns as a SELECT names them.

    A process that ran used memory: a peak of 0 is one that the kernel had not counted yet, and so is unknown.
    """
    names = [f"{table}.{name}" if table else name for name in columns]
    return ", ".join(f"nullif({name}, 0)" if name.endswith("peak_bytes") else name for name in names)


_OF_JOB = frozenset({"id", "run", "name", "first_job", "spec", "member", "submitted_at"})
_OF_EITHER = frozenset({"state", "reason", "exit", "warnings", "started_at", "ended_at", "elapsed_s"})


def select_light_job(is_earlier: bool) -> str:
    """The columns of a LightJob, from `jobs AS j` and `attempts AS a`: the job's own state, or the attempt's."""
    special = {
        "newest": "j.attempt",
        "attempt_state": "a.state",
        "derived": "NULL" if is_earlier else "j.derived",
        "is_earlier": "1" if is_earlier else "0",
    }
    own = _OF_JOB if is_earlier else _OF_JOB | _OF_EITHER
    return ", ".join(special.get(name) or select((name,), "j" if name in own else "a") for name in LightJob.columns)


def select_light_step() -> str:
    """The columns of a LightStep, from `steps AS s` and `tasks AS t`, grouped by step."""
    special = {
        "user_s": "sum(t.user_s)",
        "sys_s": "sum(t.sys_s)",
        "peak_bytes": "max(nullif(t.peak_bytes, 0))",
        "peak_task": "t.task",  # SQLite takes it from the row that has the maximum
        "peak_mean": "avg(nullif(t.peak_bytes, 0))",
        "is_cpu_least": "max(t.is_cpu_least)",
        "ended_tasks": "count(t.task)",
    }
    return ", ".join(special.get(name) or f"s.{name}" for name in LightStep.columns)


def select_outcome() -> str:
    """The columns of an Outcome, from `jobs AS j` and `attempts AS a`."""
    return ", ".join(
        "j.id" if name == "job" else
        f"j.{name[4:]}" if name.startswith("job_") else
        select((name,), "j" if name in _OF_JOB else "a")
        for name in Outcome.columns
    )  # fmt: skip
