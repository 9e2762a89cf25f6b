"""What Slurm's commands print, row by row: parsed, not interpreted.

Words are kept as they are, also those that nobody knows. A field that can't be read is
None or empty, never a number that was not there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One line of squeue."""

    job: int  # of an array: the array's id
    index: int | None  # in the array
    raw_job: int | None  # the id of its own that a member of an array has
    word: str
    reason: str
    exit: str  # `code:signal`; empty where there is none
    derived: str
    restarts: int | None
    submitted_at: float | None
    started_at: float | None
    ended_at: float | None
    nodes: str
    name: str


@dataclass(frozen=True, slots=True)
class AccountRow:
    """One line of sacct: a job (`step` is empty) or a step of it (`batch`, `extern`, `0` …)."""

    job: int
    index: int | None
    step: str
    word: str  # `CANCELLED by 1001`
    exit: str
    derived: str
    submitted_at: float | None
    started_at: float | None
    ended_at: float | None  # None: unknown, and then nothing else of the row counts
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    maxrss_bytes: int | None
    nodes: str
    name: str
