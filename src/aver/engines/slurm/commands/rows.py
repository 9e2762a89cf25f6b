"""What Slurm's commands print, row by row: parsed, not interpreted.

Words are kept as they are, also those that nobody knows. A field that can't be read is
None or empty, never a number that was not there.
"""

from __future__ import annotations

from aver.engines.slurm.commands.ids import Members
from aver.model.record import Record


class QueueRow(Record):
    """One line of squeue, or one job of scontrol."""

    job: int  # of an array: the array's id
    index: int | None  # in the array
    word: str
    reason: str
    exit: str  # `code:signal`, whole; empty where it has not ended, or has none that can be read
    derived: str  # likewise; also there while it runs
    restarts: int | None
    submitted_at: float | None
    started_at: float | None  # None while it waits: what Slurm then prints is a forecast
    ended_at: float | None  # None while it runs: likewise
    nodes: str
    name: str
    members: Members | None = None  # the row speaks of these members together, and index is None
    het: int | None = None  # part of a heterogeneous job
    said: str = ""  # the line, with `|` between its fields


class AccountRow(Record):
    """One line of sacct: a job (`step` is empty) or a step of it (`batch`, `extern`, `0` …).

    A step's row stands after the row of its job's own attempt: of a requeued job, the order tells them apart.
    """

    job: int
    index: int | None
    step: str
    word: str  # `CANCELLED by 1001`
    exit: str
    derived: str
    submitted_at: float | None  # of a step: its start, not its job's submission
    started_at: float | None
    ended_at: float | None  # None: unknown, and then nothing else of the row counts
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    maxrss_bytes: int | None
    nodes: str
    name: str
    partition: str = ""
    members: Members | None = None
    het: int | None = None
    said: str = ""

    @property
    def is_placeholder(self) -> bool:
        """Accounting heard of the job from a step before it heard of the job itself: nothing in the row counts."""
        return not self.step and not self.partition


class Queue(Record):
    """squeue answered. If the answer is whole, what is not in it is not in the queue."""

    rows: tuple[QueueRow, ...]
    is_whole: bool = True  # False: there is a row that can't be read


class Accounts(Record):
    """sacct answered. What is not in it may come later."""

    rows: tuple[AccountRow, ...]
    is_whole: bool = True


class Disabled(Record):
    """This cluster keeps no accounts."""

    text: str


class NoAnswer(Record):
    """The question was not answered. Moves nothing and ages nothing."""

    text: str
