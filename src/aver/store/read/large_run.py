"""Outcomes of a run with very many jobs: the first of each kind, how many there are, and what they add up to.

A run of a million jobs has a handful of kinds; nothing here makes a row of each job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import Thread
from typing import Any, NamedTuple

from aver.errors import AverError
from aver.model.codec import dumps
from aver.model.states import UNSETTLED, State
from aver.render.causes import is_failure
from aver.store.columns import Outcome
from aver.store.read.light import UNSETTLED_SQL
from aver.store.read.queries import FAILED, FAILED_JOBS, GIVEN
from aver.store.read.reader import Reader

HALVED = 50_000  # jobs: the attempts of so many are added up by two threads
MOST_KINDS = 100  # where there are more, all rows are read
ALIKE = (
    State.CANCELLED,
    State.SKIPPED,
    State.DEADLINE,
)  # what such a job's state and reason say is all there is to say


def failures(reader: Reader, run: int, most: int) -> tuple[list[Outcome], dict[int, int]]:
    """The settled jobs of a run that did not complete; of those alike that never began, at most `most`.

    And by the last job that was read of its kind, how many more there are.
    """
    kinds = _kinds(reader, run)
    if not any(_is_cut(kind, most) for kind in kinds) or len(kinds) > MOST_KINDS:
        return reader.outcomes(run, only_failures=True), {}
    rows: list[Outcome] = []
    left_out: dict[int, int] = {}
    for kind in kinds:
        state, reason, is_unbegun, count = kind
        limit = most if _is_cut(kind, most) else -1
        which = f"{FAILED_JOBS} AND j.state = ? AND j.reason = ? AND j.attempt {'=' if is_unbegun else '>'} 0"
        found = reader.outcomes_of(run, which, (state, reason), limit, "jobs_failed")
        if limit > 0 and found:
            left_out[found[-1].job] = count - len(found)
        rows += found
    return sorted(rows, key=lambda row: (row.job, row.attempt or 0)), left_out


class Totals(NamedTuple):
    """What the attempts of a run add up to, by the database. A sum leaves out what is not known.

    `unseen`: by state and reason, how many attempts nobody saw start.
    """

    attempts: int
    begun_jobs: int
    started: int
    timed: int  # of which the elapsed time is known
    elapsed_s: float
    clocked: int  # of which the CPU time is known
    cpu_s: float
    is_cpu_least: bool
    peak_bytes: int | None
    peaked: int  # of which the peak is known
    unseen: Mapping[tuple[str, str], int]


class FirstPage(NamedTuple):
    """`lines`: how many rows all jobs and attempts have together."""

    rows: list[Outcome]
    counts: dict[State, int]
    totals: Totals
    lines: int


def first_page(reader: Reader, run: int, jobs: int, most: int) -> FirstPage | None:
    """Of each kind of jobs the first `most`, and what all of them add up to; None: all rows are to be read.

    That is so for a run whose jobs have steps, whose numbers are not in a row, or of which a job completed otherwise
    than its attempt. Jobs may start and end meanwhile: the page is of one moment.
    """
    return None if reader.version < 12 else reader.at_one_time(lambda: _first_page(reader, run, jobs, most))


def _first_page(reader: Reader, run: int, jobs: int, most: int) -> FirstPage | None:
    ends = "SELECT (SELECT min(id) FROM jobs WHERE run = ?1), (SELECT max(id) FROM jobs WHERE run = ?1)"
    first, last = reader.fetch(ends, (run,))[0]  # each from its end of the index
    kinds = _failed_kinds(reader, run)
    if first is None or last - first + 1 != jobs or len(kinds) > MOST_KINDS:
        return None
    if reader.fetch("SELECT 1 FROM steps WHERE job BETWEEN ? AND ? LIMIT 1", (first, last)):
        return None
    counts = reader.counts(run)
    totals, completed = _totals(reader, first, last)
    if completed != counts.get(State.COMPLETED, 0):
        return None
    chosen: list[int] = []
    before = 0  # of jobs that come before those that completed
    for state, reason, attempt, _ in kinds:
        which = f"INDEXED BY jobs_failed WHERE run = ? AND {FAILED} AND state = ? AND reason = ? AND attempt = ?"
        found = _first_jobs(reader, which, (run, state, reason, attempt), most)
        chosen += found
        before += len(found) if is_failure(state, reason) else 0
    for one in UNSETTLED & counts.keys():
        which = "INDEXED BY jobs_unsettled WHERE ended_at IS NULL AND run = ? AND state = ?"
        found = _first_jobs(reader, which, (run, one), most)
        chosen += found
        before += len(found)
    if before < most and State.COMPLETED in counts:
        which = "INDEXED BY jobs_run WHERE run = ? AND state = 'COMPLETED'"
        chosen += _first_jobs(reader, which, (run,), most)
    rows = reader.outcomes_of(run, "AND j.id IN (SELECT value FROM json_each(?))", (dumps(chosen),))
    lines = totals.attempts + jobs - totals.begun_jobs + _ended_otherwise(reader, run)
    return FirstPage(rows, counts, totals, lines)


def _first_jobs(reader: Reader, which: str, parameters: tuple[object, ...], most: int) -> list[int]:
    rows = reader.fetch(f"SELECT id FROM jobs {which} ORDER BY id LIMIT ?", (*parameters, most))
    return [job for (job,) in rows]


def _totals(reader: Reader, first: int, last: int) -> tuple[Totals, int]:
    """The totals, and how many attempts completed."""
    rows = [_sums(reader, first, last)] if last - first < HALVED else _sums_of_halves(reader, first, last)
    peak = max((row[0] for row in rows if row[0] is not None), default=None)
    sums = [sum(column) for column in zip(*[row[1:] for row in rows], strict=True)]
    attempts, begun, completed, started, timed, elapsed_s, clocked, cpu_s, least, peaked = sums
    unseen = {}
    if started < attempts:  # what is known of attempts that nobody saw start does not count
        for state, reason, count, *known in reader.fetch(_UNSEEN, (first, last)):
            unseen[state, reason] = count
            timed, clocked, peaked = timed - known[0], clocked - known[1], peaked - known[2]
    totals = Totals(
        attempts, int(begun), started, timed, elapsed_s, clocked, cpu_s, least > 0, peak or None, peaked, unseen
    )  # fmt: skip
    return totals, int(completed)


_ATTEMPTS = f"FROM attempts AS a WHERE a.job BETWEEN ? AND ? AND {GIVEN}"
_SUMS = (
    "SELECT max(peak_bytes), count(*), total(attempt = 1), total(state = 'COMPLETED'), count(started_at), "
    "count(elapsed_s), total(elapsed_s), count(user_s + sys_s), total(user_s + sys_s), "
    f"total(is_cpu_least), count(nullif(peak_bytes, 0)) {_ATTEMPTS}"
)
_UNSEEN = (
    "SELECT state, reason, count(*), count(elapsed_s), count(user_s + sys_s), count(nullif(peak_bytes, 0)) "
    f"{_ATTEMPTS} AND started_at IS NULL GROUP BY state, reason"
)


def _sums(reader: Reader, first: int, last: int) -> tuple[Any, ...]:
    """The highest peak; then what can be added."""
    row: tuple[Any, ...] = reader.fetch(_SUMS, (first, last))[0]
    return row


def _sums_of_halves(reader: Reader, first: int, last: int) -> list[tuple[Any, ...]]:
    """SQLite reads without the interpreter's lock, so two threads take half the time of one."""
    middle = (first + last) // 2
    newest = reader.last_seq()
    found: list[tuple[Any, ...]] = []

    def read_second(other: Reader) -> None:
        if other.last_seq() == newest:  # both see the same state of the store
            found.append(_sums(other, middle + 1, last))

    def begin() -> None:
        try:
            other = Reader.open(reader.path)
            if other is not None:
                with other:
                    other.at_one_time(lambda: read_second(other))
        except AverError:
            return  # the other thread meets it too

    thread = Thread(target=begin)
    thread.start()
    rows = [_sums(reader, first, middle)]
    thread.join()
    return rows + (found or [_sums(reader, middle + 1, last)])


def _ended_otherwise(reader: Reader, run: int) -> int:
    """How many jobs ended in another state than their newest attempt, after it: they have one more row."""
    text = (
        f"SELECT count(*) FROM jobs AS j INDEXED BY jobs_failed CROSS JOIN attempts AS a WHERE j.run = ? {FAILED_JOBS} "
        f"AND a.job = j.id AND a.attempt = j.attempt AND a.state <> j.state AND a.state NOT IN {UNSETTLED_SQL}"
    )
    return int(reader.fetch(text, (run,))[0][0])


def _is_cut(kind: tuple[str, str, bool, int], most: int) -> bool:
    state, _, is_unbegun, count = kind
    return is_unbegun and state in ALIKE and count > most


def _kinds(reader: Reader, run: int) -> list[tuple[str, str, bool, int]]:
    """State, reason, whether they never began, and how many: of the settled jobs that did not complete."""
    if reader.version < 12:
        return []
    counts: Counter[tuple[str, str, bool]] = Counter()
    for state, reason, attempt, count in _failed_kinds(reader, run):
        counts[state, reason, attempt == 0] += count
    return [(*kind, count) for kind, count in counts.items()]


def _failed_kinds(reader: Reader, run: int) -> list[tuple[str, str, int, int]]:
    """The same by attempts: state, reason, the newest attempt, and how many."""
    text = (
        f"SELECT j.state, j.reason, j.attempt, count(*) FROM jobs AS j INDEXED BY jobs_failed WHERE j.run = ? "
        f"{FAILED_JOBS} GROUP BY j.state, j.reason, j.attempt"
    )
    return reader.fetch(text, (run,))
