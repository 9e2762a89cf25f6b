"""The documents of `results`, `why RUN`, `usage` and `recover`; the rules are those of `documents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aver.model.record import dataclass

if TYPE_CHECKING:
    from aver.client.documents import ExitFacts
    from aver.report.results import Sums
    from aver.report.usage import GroupUse, JobUse


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """One attempt of a job; `attempt` is None for a job that never had one. `log` is the end of its output."""

    job: int
    name: str
    attempt: int | None
    state: str
    exit: ExitFacts | None
    return_code: int | None
    reason: str
    verified: bool | None
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    cpu_s: float | None
    peak_bytes: int | None
    node: str | None
    log: str | None


@dataclass(frozen=True, slots=True)
class ResultList:
    """`sums` are of all rows that were selected, also those that are not shown."""

    run: int
    state: str
    results: tuple[ResultFacts, ...]
    left_out: int
    sums: Sums


@dataclass(frozen=True, slots=True)
class HintFacts:
    """A line of a log that is well known. A hint is no evidence. `count` of the logs that were read have it."""

    name: str
    line: str
    advice: str
    count: int
    job: int


@dataclass(frozen=True, slots=True)
class CauseFacts:
    """`jobs` are the first few of `count`."""

    state: str
    sentence: str
    count: int
    jobs: tuple[int, ...]
    hints: tuple[HintFacts, ...]
    logs_read: int
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CauseList:
    run: int
    name: str
    state: str
    counts: dict[str, int]
    unsettled: int
    causes: tuple[CauseFacts, ...]


@dataclass(frozen=True, slots=True)
class UsageList:
    run: int
    groups: tuple[GroupUse, ...]
    jobs: tuple[JobUse, ...]
    left_out: int  # jobs that are not shown
    never_ran: int
    cpu_s: float | None
    cpu_given_s: float | None


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """`key`, `old` and `new` as they stand in a flow; `old` None: it did not say."""

    job: str
    key: str
    old: str | None
    new: str
    why: str


@dataclass(frozen=True, slots=True)
class LeftFacts:
    job: str
    why: str


@dataclass(frozen=True, slots=True)
class Corrected:
    """`file` None: the run did not come from a flow's file."""

    run: int
    file: str | None
    is_dry_run: bool
    changes: tuple[ChangeFacts, ...]
    left: tuple[LeftFacts, ...]
    diff: str


@dataclass(frozen=True, slots=True)
class AgainFacts:
    job: int
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class HopelessFacts:
    """A job that another attempt can't mend."""

    job: int
    name: str
    state: str
    why: str
    next: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """`round` is the one that was begun; None: nothing was. `waiting` jobs come back when what they need completes."""

    run: int
    is_dry_run: bool
    round: int | None
    file: str | None
    changes: tuple[ChangeFacts, ...]
    left: tuple[LeftFacts, ...]
    diff: str
    jobs: tuple[AgainFacts, ...]
    hopeless: tuple[HopelessFacts, ...]
    waiting: int


ReportDocument = ResultList | CauseList | UsageList | Corrected | Recovered
