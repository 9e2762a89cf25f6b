"""What the planner tells the coordinator to do, and how a run can be cancelled. Data only; jobs by number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Start:
    """Its needs are settled as required: it may be scheduled now."""

    job: int


@dataclass(frozen=True, slots=True)
class Skip:
    """It is SKIPPED. `counts_as_success`: its condition simply did not apply."""

    job: int
    reason: str
    detail: str
    counts_as_success: bool


@dataclass(frozen=True, slots=True)
class Unskip:
    """It was SKIPPED and is PENDING (Dependency) again."""

    job: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """It had not started and is CANCELLED."""

    job: int


Instruction = Start | Skip | Unskip | Cancel


class RunCancel(Enum):
    """Whether the run was cancelled, and how."""

    NO = 0
    FINISHERS_RUN = 1  # jobs with `if: always` still run
    NOW = 2
