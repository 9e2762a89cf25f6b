"""The documents of `results`, `why RUN`, `usage` and `recover`, with the same rules as `documents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aver.model.record import Record

if TYPE_CHECKING:
    from aver.client.changes import Rerun
    from aver.report.correction.run import LeftAlone
    from aver.report.recover import Hopeless
    from aver.report.results import Result, Sums
    from aver.report.usage import GroupUse, JobUse


class ResultList(Record):
    """`sums` cover all selected rows, shown or not."""

    run: int
    state: str
    results: tuple[Result, ...]
    left_out: int
    sums: Sums
    unselected: tuple[str, ...]  # jobs of the flow that are not in this run


class HintFacts(Record):
    """A well-known log line. A hint is never evidence. `count` is the number of logs with this line."""

    name: str
    line: str
    advice: str
    count: int
    job: int


class CauseFacts(Record):
    """`jobs` are the first few of `count`."""

    state: str
    sentence: str
    count: int
    jobs: tuple[int, ...]
    hints: tuple[HintFacts, ...]
    logs_read: int
    next: tuple[str, ...]


class CauseList(Record):
    run: int
    name: str
    state: str
    counts: dict[str, int]
    unsettled: int
    causes: tuple[CauseFacts, ...]


class UsageList(Record):
    run: int
    groups: tuple[GroupUse, ...]
    jobs: tuple[JobUse, ...]
    left_out: int  # jobs that are not shown
    never_ran: int
    cpu_s: float | None
    is_cpu_least: bool  # children that nobody waited for may have used more
    cpu_given_s: float | None


class ChangeFacts(Record):
    """`key`, `old` and `new` as written in a flow; `old` None: the key was not set."""

    job: str
    key: str
    old: str | None
    new: str
    why: str


class Corrected(Record):
    """`file` None: the run did not come from a flow's file."""

    run: int
    file: str | None
    is_dry_run: bool
    changes: tuple[ChangeFacts, ...]
    left: tuple[LeftAlone, ...]
    diff: str


class Recovered(Record):
    """`round` is the new round, None if none began. `waiting` jobs run once the jobs that they need complete."""

    run: int
    is_dry_run: bool
    round: int | None
    file: str | None
    changes: tuple[ChangeFacts, ...]
    left: tuple[LeftAlone, ...]
    diff: str
    jobs: tuple[Rerun, ...]
    hopeless: tuple[Hopeless, ...]
    waiting: int


ReportDocument = ResultList | CauseList | UsageList | Corrected | Recovered
