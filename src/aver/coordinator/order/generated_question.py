"""What the coordinator asks the process that reads generated jobs, and what that process answers.

Apart from both: the coordinator needs no parser of flows, which takes 3 MB.
"""

from __future__ import annotations

from aver.model.job import FlowSpec
from aver.model.record import Record
from aver.plan.packing import Room

CPU_S = 60  # that reading may take


class Question(Record):
    """Which file, of which job. `engine` and `host` are where that job ran, `total` is what this machine has."""

    path: str
    database: str
    run: int
    job: int
    engine: str | None
    host: str | None
    total: Room
    secrets: tuple[str, ...] = ()  # names of variables


class Answer(Record):
    """The batch, or the problem with it."""

    flow: FlowSpec | None = None
    problem: str = ""
