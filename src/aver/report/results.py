"""The results of a run: one row for each job and attempt, failed jobs first, and what they add up to.

Reads the store's rows and decides nothing: states, exits and reasons are those of the verdicts. The newest attempt
of a job shows the job's own verdict, which may have been corrected since; older attempts keep theirs. Unknown is None.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from aver.judge.run import WORST_FIRST, return_code
from aver.model.exit import ExitStatus
from aver.model.reasons import NONE
from aver.model.record import Record
from aver.model.states import UNSETTLED, State
from aver.render.causes import is_failure
from aver.render.verdict import may_have_run
from aver.store.columns import MEASURED, Outcome
from aver.store.read.large_run import Totals

_STATES = {state.value: state for state in State}
_VERIFIED = {None: None, 0: False, 1: True}


class Result(Record):
    """How one attempt ended and what it used. `attempt` None: the job never had one. `log` is the end of its output."""

    job: int
    name: str
    attempt: int | None
    state: State
    exit: ExitStatus | None
    return_code: int | None
    reason: str | None  # None: there is none, as of a success
    verified: bool | None
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    cpu_s: float | None
    is_cpu_least: bool  # children that nobody waited for may have used more
    peak_bytes: int | None
    node: str | None
    log: str | None = None


class Sums(Record):
    """Totals of the rows. A sum is None if a part of it is unknown; `peak_bytes` is the highest known peak.

    `peaks_unknown` counts the attempts that ran, or may have, and whose peak is not known.
    """

    jobs: int
    attempts: int
    counts: dict[str, int]  # jobs by state
    elapsed_s: float | None
    cpu_s: float | None
    is_cpu_least: bool  # of one of the attempts
    peak_bytes: int | None
    peaks_unknown: int


class Line(Record):
    """A stored attempt to show, and whether it is the newest of its job."""

    row: Outcome
    is_newest: bool

    @property
    def state(self) -> str:
        return self.row.job_state if _takes_job(self.row, self.is_newest) else str(self.row.state)


def lines_of(rows: Sequence[Outcome]) -> list[Line]:
    """Sort the rows: failed jobs first, worst first; the attempts of a job stay together, in order."""
    rows = [one for row, after in pairwise([*rows, None]) for one in _with_job(row, after)]
    newest = [row.job != after.job for row, after in pairwise(rows)]
    lines = [Line(row, is_newest) for row, is_newest in zip(rows, [*newest, True], strict=False)]
    ranks = {key: _rank(*key) for key in {(row.job_state, row.job_reason) for row in rows}}
    return sorted(lines, key=lambda line: ranks[line.row.job_state, line.row.job_reason])  # stable: by job, by attempt


def _with_job(row: Outcome | None, after: Outcome | None) -> Iterator[Outcome]:
    """The row, and one of the job itself where it ended later, before another attempt began: cancelled, skipped."""
    assert row is not None
    yield row
    is_newest = after is None or after.job != row.job
    if is_newest and row.state not in (None, *UNSETTLED) and row.job_state not in (*UNSETTLED, row.state):
        attempts_own = Outcome.columns[Outcome.columns.index("attempt") :]
        yield row.changed(**dict.fromkeys((*MEASURED, *attempts_own)))


def is_failed(line: Line) -> bool:
    """Whether its job is settled and is not a success."""
    return is_failure(line.row.job_state, line.row.job_reason)


def selected(
    lines: Iterable[Line], states: frozenset[str], only_failed: bool, fits: Callable[[str], bool] | None
) -> list[Line]:
    """Filter the lines by state (no states: all), by failure, and by name."""
    found = [line for line in lines if not only_failed or is_failed(line)]
    if states:
        found = [line for line in found if line.state in states]
    return found if fits is None else [line for line in found if fits(line.row.name)]


def result_of(line: Line, step_warnings: Mapping[int, Sequence[str]] = {}) -> Result:
    """Return the row as shown; `step_warnings` are by job and belong to its newest attempt."""
    row = line.row
    if _takes_job(row, line.is_newest):
        state, reason, raw, verified = row.job_state, row.job_reason, row.job_exit, row.job_verified
        source, warnings, detail = row.job_source, row.job_warnings, row.job_detail
    else:
        state, reason, raw, verified = str(row.state), row.reason or "", row.exit, row.verified
        source, warnings, detail = row.source, row.warnings, row.detail
    of_steps = step_warnings.get(row.job, ()) if line.is_newest else ()
    ended = _exit(raw)
    known = _STATES[state]
    return Result(
        row.job, row.name, row.attempt, known, ended, return_code(known, ended),
        None if reason in ("", NONE) else reason, _VERIFIED.get(verified), source,
        (*_warnings(warnings), *of_steps), detail or "", row.started_at,
        row.ended_at if row.attempt else row.job_ended_at, row.elapsed_s, cpu_of(row), bool(row.is_cpu_least),
        row.peak_bytes, row.node,
    )  # fmt: skip


def sums_of(lines: Sequence[Line]) -> Sums:
    """Sum up the lines; attempts that never began add nothing."""
    counts = Counter({line.row.job: line.row.job_state for line in lines}.values())
    ran = [line.row for line in lines if line.row.started_at is not None or began_unseen(line.row)]
    elapsed = [row.elapsed_s for row in ran]
    cpu = [cpu_of(row) for row in ran]
    return Sums(
        jobs=len({line.row.job for line in lines}),
        attempts=sum(line.row.attempt is not None for line in lines),
        counts=dict(counts),
        elapsed_s=_total(elapsed),
        cpu_s=_total(cpu),
        is_cpu_least=any(row.is_cpu_least for row in ran),
        peak_bytes=max((row.peak_bytes for row in ran if row.peak_bytes is not None), default=None),
        peaks_unknown=sum(row.peak_bytes is None for row in ran),
    )


def sums_of_totals(totals: Totals, jobs: int, counts: dict[str, int]) -> Sums:
    """The same of all attempts of a run, by what the database adds up."""
    unseen = sum(count for (state, reason), count in totals.unseen.items() if may_have_run(_STATES[state], reason))
    ran = totals.started + unseen
    return Sums(
        jobs=jobs,
        attempts=totals.attempts,
        counts=counts,
        elapsed_s=totals.elapsed_s if totals.timed == ran else None,
        cpu_s=totals.cpu_s if totals.clocked == ran else None,
        is_cpu_least=totals.is_cpu_least,
        peak_bytes=totals.peak_bytes,
        peaks_unknown=ran - totals.peaked,
    )


def began_unseen(row: Outcome) -> bool:
    """Whether the attempt ran or may have run although nobody saw it start: its figures are unknown, not 0."""
    return row.started_at is None and row.state is not None and may_have_run(_STATES[row.state], row.reason or "")


def cpu_of(row: Outcome) -> float | None:
    """Cpu seconds, user and system together; None where one of the two is not known."""
    return None if row.user_s is None or row.sys_s is None else row.user_s + row.sys_s


def _takes_job(row: Outcome, is_newest: bool) -> bool:
    """Whether the row shows the job's own state: it is settled, or the attempt itself is not."""
    return is_newest and (row.state is None or row.job_state not in UNSETTLED or row.state in UNSETTLED)


def _rank(state: str, reason: str) -> int:
    known = _STATES[state]
    if known in WORST_FIRST:
        return WORST_FIRST.index(known)
    if known is State.SKIPPED and is_failure(state, reason):
        return len(WORST_FIRST)
    return len(WORST_FIRST) + (1 if known in UNSETTLED else 2)


@cache
def _exit(raw: int | None) -> ExitStatus | None:
    """None for what is not a wait status: not known, never guessed."""
    try:
        return None if raw is None else ExitStatus.from_wait(raw)
    except (ValueError, TypeError):
        return None


@cache
def _warnings(text: str | None) -> tuple[str, ...]:
    try:
        found = json.loads(text) if text else []
    except ValueError:
        return (f"its warnings can't be read: {text!r}",)
    return tuple(map(str, found)) if isinstance(found, list) else (str(found),)


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
