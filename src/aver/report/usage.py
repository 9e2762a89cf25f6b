"""Requested and used resources by job, by group (all members of a matrix) and for the run.

Reads the store's rows; the figures are those of the newest attempt that ended, as its witness or the scheduler's
accounting measured them, and say which. Unknown stays None. Peaks and times of a group are its highest, since
those decide what must be asked for; its cpu share is that of all its cpu time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from aver.model.job import Request
from aver.model.reasons import DEADLINE
from aver.model.record import Record
from aver.model.states import UNSETTLED
from aver.report.measure import Mark, Measured, Rules, cpu_mark, mem_mark, share, time_mark, worst
from aver.report.results import began_unseen, cpu_of
from aver.store.columns import Outcome

Requests = Callable[[str], Request]
_MEASURED_BY = {"witness": "witness", "accounting": "sacct", "queue": "sacct"}  # by who attests the verdict
GroupKey = tuple[int, int]  # first_job and spec: which definition made the job


class Use(Record):
    """One resource: asked for (None: no limit), used (None: not known), the share, and what it means."""

    asked: float | None
    used: float | None
    share: float | None
    mark: Mark


class JobUse(Record):
    """A job's newest attempt that ended. `measured_by`: who measured."""

    job: int
    name: str
    group: str
    attempt: int
    state: str
    mem: Use
    cpus: Use
    time: Use
    cpu_s: float | None
    is_cpu_least: bool
    measured_by: str


class GroupUse(Record):
    """All jobs of one definition. `unknown` counts those of which a figure is not known."""

    name: str
    jobs: int
    unknown: int
    mem: Use
    cpus: Use
    time: Use
    cpu_s: float | None
    is_cpu_least: bool
    measured_by: tuple[str, ...]


class Ended(NamedTuple):
    """A job's newest attempt that ended, its figures, and what they mean for memory, cpus and time."""

    row: Outcome
    measured: Measured
    mem: Mark
    cpus: Mark
    time: Mark


class RunUse(Record):
    """`never_ran` jobs have no figures; `cpu_given_s` is elapsed time times the cpus asked for.

    `cpu_s` and `cpu_given_s` are those of all attempts that have ended, the newest and those before it;
    `is_cpu_least`: children of one of them that nobody waited for may have used more.
    """

    ended: tuple[Ended, ...]
    never_ran: int
    cpu_s: float | None
    is_cpu_least: bool
    cpu_given_s: float | None

    @property
    def groups(self) -> tuple[GroupUse, ...]:
        """Return the definitions that have measured jobs, in the order of the flow."""
        return tuple([_group_use(members) for members in self._members().values()])

    @property
    def group_count(self) -> int:
        return len(self._members())

    def _members(self) -> dict[GroupKey, list[Ended]]:
        groups: dict[GroupKey, list[Ended]] = {}
        for one in self.ended:
            groups.setdefault((one.row.first_job, one.row.spec), []).append(one)
        return groups

    def jobs(self, most: int | None = None, worst_first: bool = False) -> tuple[JobUse, ...]:
        """Each job that has figures, by number; with `worst_first` what should be looked at comes before the rest."""
        chosen = sorted(self.ended, key=_rank) if worst_first else self.ended
        return tuple([_job_use(one) for one in chosen[:most]])


def measured_of(row: Outcome, requests: Requests) -> Measured | None:
    """Return the figures of an attempt that began and ended; None for any other."""
    if row.state is None or row.state in UNSETTLED or row.started_at is None or row.request is None:
        return None
    asked = requests(row.request)
    is_whole = measured_by(row) == "witness" and not row.is_cpu_least  # nobody has the peaks of such children either
    used = row.elapsed_s, cpu_of(row), row.peak_bytes
    return Measured(
        row.state, asked.cpus, asked.mem_bytes, asked.time_s, *used, is_whole, row.reason == DEADLINE,
        bool(row.is_cpu_least),
    )  # fmt: skip


def group_name(name: str) -> str:
    """`train` of `train[seed=2]`."""
    return name.partition("[")[0]


def measured_by(row: Outcome) -> str:
    """The source of the measurement: the witness where it left a record, else sacct; none where nobody saw the end."""
    return _MEASURED_BY.get(row.source or "", "nobody")


def run_use(rows: Iterable[Outcome], requests: Requests, rules: Rules = Rules()) -> RunUse:
    newest: dict[int, tuple[Outcome, Measured]] = {}
    known: set[int] = set()
    cpu: list[float | None] = []
    given: list[float | None] = []
    is_least = False
    for row in rows:
        known.add(row.job)
        measured = measured_of(row, requests)
        if measured is not None:
            newest[row.job] = (row, measured)
            cpu.append(measured.cpu_s)
            is_least = is_least or measured.is_cpu_least
            given.append(_given(measured))
        elif began_unseen(row):
            cpu.append(None)
            given.append(None)
    ended = tuple(
        [
            Ended(row, one, mem_mark(one, rules), cpu_mark(one, rules), time_mark(one, rules))
            for row, one in newest.values()
        ]
    )
    return RunUse(
        ended=ended,
        never_ran=len(known) - len(newest),
        cpu_s=_total(cpu),
        is_cpu_least=is_least,
        cpu_given_s=_total(given),
    )


def _rank(one: Ended) -> int:
    marks = (one.mem, one.cpus, one.time)
    return 0 if Mark.OVER in marks else 1 if Mark.UNKNOWN in marks else 2 if Mark.UNDER in marks else 3


def _job_use(ended: Ended) -> JobUse:
    row, one = ended.row, ended.measured
    used = one.used_cpus
    return JobUse(
        row.job,
        row.name,
        group_name(row.name),
        row.attempt or 0,
        one.state,
        Use(one.mem_bytes, one.peak_bytes, share(one.peak_bytes, one.mem_bytes), ended.mem),
        Use(one.cpus, used, share(used, one.cpus), ended.cpus),
        Use(one.time_s, one.elapsed_s, share(one.elapsed_s, one.time_s), ended.time),
        one.cpu_s,
        one.is_cpu_least,
        measured_by(row),
    )


def _group_use(members: Sequence[Ended]) -> GroupUse:
    """Mark under-use only if every member has it: the members share one request."""
    all_of = [one.measured for one in members]
    cpu_s, given = _total([one.cpu_s for one in all_of]), _total([_given(one) for one in all_of])
    mean_cpus = None if cpu_s is None else share(cpu_s, _total([one.elapsed_s for one in all_of]))
    mem_asked = _most([one.mem_bytes for one in all_of], unlimited=True)
    time_asked = _most([one.time_s for one in all_of], unlimited=True)
    peak, longest = _most([one.peak_bytes for one in all_of]), _most([one.elapsed_s for one in all_of])
    cpus_mark = _of_all({one.cpus for one in members})
    return GroupUse(
        name=group_name(members[0].row.name),
        jobs=len(members),
        unknown=sum(one.peak_bytes is None or one.elapsed_s is None or one.cpu_s is None for one in all_of),
        mem=Use(mem_asked, peak, share(peak, mem_asked), _of_all({one.mem for one in members})),
        cpus=Use(max(one.cpus for one in all_of), mean_cpus, share(cpu_s, given), cpus_mark),
        time=Use(time_asked, longest, share(longest, time_asked), _of_all({one.time for one in members})),
        cpu_s=cpu_s,
        is_cpu_least=any(one.is_cpu_least for one in all_of),
        measured_by=tuple(sorted({measured_by(one.row) for one in members})),
    )


def _of_all(found: set[Mark]) -> Mark:
    if Mark.OVER in found or len(found) == 1:
        return worst(found)
    return Mark.UNKNOWN if Mark.UNKNOWN in found else Mark.FINE


def _given(one: Measured) -> float | None:
    return None if one.elapsed_s is None else one.elapsed_s * one.cpus


def _most(values: Sequence[float | None], unlimited: bool = False) -> float | None:
    """Return the highest known value; for limits, None if one has no limit."""
    known = [value for value in values if value is not None]
    if unlimited and len(known) < len(values):
        return None
    return max(known, default=None)


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None
