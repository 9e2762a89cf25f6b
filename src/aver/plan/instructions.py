"""What the planner tells the coordinator to do, and how a run can be cancelled. Data only; jobs by number."""

from __future__ import annotations

from enum import Enum

from aver.model.record import Record


class Start(Record):
    """The needs of the job are settled as required: it may be scheduled now."""

    job: int


class Skip(Record):
    """The job is SKIPPED."""

    job: int
    reason: str
    detail: str


class Unskip(Record):
    """The job was SKIPPED and is PENDING (Dependency) again."""

    job: int


class Cancel(Record):
    """The job had not started and is CANCELLED."""

    job: int


class SkipAll(Record):
    """The jobs `first` to `last` are SKIPPED, all for the same."""

    first: int
    last: int
    reason: str
    detail: str


class CancelAll(Record):
    """The jobs `first` to `last` had not started and are CANCELLED."""

    first: int
    last: int


Instruction = Start | Skip | SkipAll | Unskip | Cancel | CancelAll


class RunCancel(Enum):
    """Whether the run was cancelled, and how."""

    NO = 0
    FINISHERS_RUN = 1  # jobs with `if: always` still run
    NOW = 2
