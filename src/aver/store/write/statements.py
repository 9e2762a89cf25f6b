"""The SQL of the writer.

Rows are dictionaries by column. All rows of a statement have the same keys in the same order. The values of some rows
are parameters of one statement; many travel as one JSON document, which takes SQLite longer and lets the interpreter
lock go once. In the SQL a row's values are `new_` and their key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import isfinite
from typing import Any

from aver.model.codec import dumps_rows
from aver.model.record import Record
from aver.store.columns import MEASURED, TIMES, VERDICT

Values = dict[str, Any]


Parameter = str | int | float | None
RowsSql = Callable[[tuple[str, ...]], str]
LARGEST_INTEGER = (1 << 63) - 1
MOST_PARAMETERS = 999  # of one statement, in every SQLite
MOST_AS_PARAMETERS = 256  # rows
_VALUE = re.compile(r"<value (\d+)>")
_FROM_ROWS = " <from rows>"


class Statement(Record):
    sql: str
    parameters: tuple[Parameter, ...]


def with_rows(make: RowsSql, rows: Sequence[Values]) -> Iterator[Statement]:
    """The statements that `make` makes of the rows' keys, with the rows."""
    return with_values(make(tuple(rows[0])), [tuple(row.values()) for row in rows])


def with_values(text: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[Statement]:
    """The same for rows of values. Powers of two, so that SQLite knows most statements from before."""
    if len(rows) > MOST_AS_PARAMETERS:
        yield Statement(_of_many(text), (dumps_rows(rows),))
        return
    most = 1 << (MOST_PARAMETERS // len(rows[0])).bit_length() - 1
    at = 0
    while at < len(rows):
        count = min(most, 1 << (len(rows) - at).bit_length() - 1)
        values = [
            value
            if value is None
            or (kind := type(value)) is str
            or (kind is float and value - value == 0)  # finite
            or (kind is int and -LARGEST_INTEGER <= value <= LARGEST_INTEGER)
            else _parameter(value)
            for row in rows[at : at + count]
            for value in row
        ]
        yield Statement(_of_some(text, len(rows[0]), count), tuple(values))
        at += count


@cache
def _of_many(text: str) -> str:
    """The values of each row of a JSON document. Not by ->>, which SQLite has only since 3.38."""
    return _VALUE.sub(r"json_extract(value, '$[\1]')", text).replace(_FROM_ROWS, " FROM json_each(?)")


@cache
def _of_some(text: str, width: int, count: int) -> str:
    """The values of so many rows as parameters."""
    if count == 1:
        return _VALUE.sub(lambda found: f"?{int(found[1]) + 1}", text).replace(_FROM_ROWS, "")
    row = f"({', '.join('?' * width)})"
    named = _VALUE.sub(lambda found: f"column{int(found[1]) + 1}", text)
    return named.replace(_FROM_ROWS, f" FROM (VALUES {', '.join([row] * count)})")


def _parameter(value: Any) -> Parameter:
    """The value that SQLite's JSON functions would make of it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER else float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return dumps_rows(value)


def _value(at: int) -> str:
    return f"<value {at}>"


def _new(names: Sequence[str]) -> str:
    """The rows, to update FROM."""
    return f"(SELECT {', '.join(f'{_value(at)} AS new_{name}' for at, name in enumerate(names))}{_FROM_ROWS})"


def _into(verb: str, table: str, names: Sequence[str], **same: str) -> str:
    """Put the rows into a table; `same` are columns that have the same value in all of them."""
    columns = ", ".join([*same, *names])
    values = ", ".join([*(f"'{value}'" for value in same.values()), *map(_value, range(len(names)))])
    return f"{verb} INTO {table} ({columns}) SELECT {values}{_FROM_ROWS}"


def _of_known_job(names: Sequence[str]) -> str:
    return f"WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = {_value(names.index('job'))})"


def _set(names: Sequence[str]) -> str:
    return ", ".join(f"{name} = new_{name}" for name in names)


def _set_if_known(names: Sequence[str]) -> str:
    return ", ".join(f"{name} = coalesce(new_{name}, {name})" for name in names)


_SET_VERDICT = _set(("state", "reason", *VERDICT))
_SET_END = "ended_at = coalesce(iif(new_keeps_end, ended_at, NULL), new_ended_at)"

INSERT_EVENTS = _into("INSERT", "events", ("seq", "at", "run", "job", "attempt", "kind", "data", "said"))
SELECT_NEXT_ID = (
    "SELECT max(value, (SELECT coalesce(max(id), 0) + 1 FROM jobs), (SELECT coalesce(max(id), 0) + 1 FROM runs)) "
    "FROM meta WHERE key = 'next_id'"
)
RAISE_NEXT_ID = "UPDATE meta SET value = max(value, ?) WHERE key = 'next_id'"


@cache
def insert_runs(names: tuple[str, ...]) -> str:
    return _into("INSERT", "runs", names, state="PENDING", round="1")


@cache
def insert_jobs(names: tuple[str, ...]) -> str:
    return _into("INSERT", "jobs", names, state="PENDING", attempt="0")


@cache
def grow_runs(names: tuple[str, ...]) -> str:
    more = f"(SELECT new_run, sum(new_jobs) AS more FROM {_new(names)} GROUP BY new_run)"
    return f"UPDATE runs SET jobs = jobs + more FROM {more} WHERE id = new_run"


@cache
def add_engines(names: tuple[str, ...]) -> str:
    rows = f"(SELECT new_run, json_group_array(new_engine) AS more FROM {_new(names)} GROUP BY new_run)"
    both = "SELECT value FROM json_each(engines) UNION SELECT value FROM json_each(more)"
    return f"UPDATE runs SET engines = (SELECT json_group_array(value) FROM ({both})) FROM {rows} WHERE id = new_run"


@cache
def update_jobs(names: tuple[str, ...]) -> str:
    times = ", ".join(f"{name} = coalesce(new_{name}, iif(new_fresh, NULL, {name}))" for name in TIMES)
    return f"""UPDATE jobs SET attempt = coalesce(new_attempt, attempt), {_SET_VERDICT}, {_SET_END}, {times},
        derived = iif(new_is_over OR attempt < new_attempt, 0, derived)
        FROM {_new(names)} WHERE id = new_job AND attempt <= coalesce(new_attempt, attempt)"""


@cache
def raise_attempts(names: tuple[str, ...]) -> str:
    return f"""UPDATE jobs SET attempt = new_attempt, derived = 0
        FROM {_new(names)} WHERE id = new_job AND attempt < new_attempt"""


@cache
def put_attempts(names: tuple[str, ...]) -> str:
    return f"{_into('REPLACE', 'attempts', names, state='PENDING', reason='None')} {_of_known_job(names)}"


@cache
def update_attempts(names: tuple[str, ...]) -> str:
    return f"""UPDATE attempts SET {_SET_VERDICT}, {_SET_END}, {_set_if_known(MEASURED)}
        FROM {_new(names)} WHERE job = new_job AND attempt = new_attempt"""


@cache
def update_runs(names: tuple[str, ...]) -> str:
    return f"UPDATE runs SET {_set(('state', 'round', 'ended_at'))} FROM {_new(names)} WHERE id = new_run"


@cache
def put_steps(names: tuple[str, ...]) -> str:
    return f"{_into('REPLACE', 'steps', names, state='RUNNING', reason='None')} {_of_known_job(names)}"


@cache
def put_tasks(names: tuple[str, ...]) -> str:
    return f"{_into('REPLACE', 'tasks', names)} {_of_known_job(names)}"


_SAME_STEP = "job = new_job AND attempt = new_attempt AND step = new_step"


@cache
def widen_steps(names: tuple[str, ...]) -> str:
    """Where nobody said how many tasks a step has, it has at least those that were heard of."""
    return f"UPDATE steps SET tasks = new_tasks FROM {_new(names)} WHERE {_SAME_STEP} AND tasks < new_tasks"


@cache
def end_steps(names: tuple[str, ...]) -> str:
    return f"UPDATE steps SET {_set(names[3:])} FROM {_new(names)} WHERE {_SAME_STEP}"


@cache
def measure_steps(names: tuple[str, ...]) -> str:
    """A step ends with the last of its tasks, as their witnesses measured it: the wall's clock may have been set."""
    of_step = "FROM tasks AS t WHERE t.job = steps.job AND t.attempt = steps.attempt AND t.step = steps.step"
    return f"""UPDATE steps SET ended_at = (SELECT max(t.ended_at) {of_step}) FROM {_new(names)}
        WHERE {_SAME_STEP} AND (SELECT min(t.elapsed_s IS NOT NULL) {of_step})"""


@cache
def raise_derived(names: tuple[str, ...]) -> str:
    """max() of two values is NULL if one of them is: unknown stays unknown."""
    return f"""UPDATE jobs SET derived = max(derived, new_derived)
        FROM {_new(names)} WHERE id = new_job AND attempt = new_attempt"""


# Of jobs that ended without a start: a plan that no engine was given is not an attempt.
WITHDRAW = (
    "DELETE FROM attempts WHERE job IN (SELECT value FROM json_each(?)) AND state = 'PENDING'",
    """UPDATE jobs SET attempt = (SELECT coalesce(max(attempts.attempt), 0) FROM attempts WHERE attempts.job = jobs.id)
        WHERE id IN (SELECT value FROM json_each(?)) AND attempt > 1""",
)

# The same of jobs with numbers in a row, and their verdict with it.
_ENDED = ("state", "reason", *VERDICT)
_WITHDRAW_RANGE = "DELETE FROM attempts WHERE job BETWEEN ? AND ? AND state = 'PENDING'"
_END_RANGE = f"""UPDATE jobs SET {", ".join(f"{name} = ?" for name in _ENDED)}, ended_at = coalesce(ended_at, ?),
    attempt = iif(attempt > 1, (SELECT coalesce(max(attempts.attempt), 0) FROM attempts WHERE attempts.job = jobs.id),
    attempt) WHERE id BETWEEN ? AND ? AND run = ?"""


def end_range(run: int, first: int, last: int, at: float, columns: Values) -> Iterator[Statement]:
    """Settle jobs that never started; `columns` are state, reason and verdict."""
    yield Statement(_WITHDRAW_RANGE, (first, last))
    values = tuple(_parameter(columns[name]) for name in _ENDED)
    yield Statement(_END_RANGE, (*values, at, first, last, run))


PRUNE = (
    "DELETE FROM tasks WHERE job IN (SELECT id FROM jobs WHERE run = ?)",
    "DELETE FROM steps WHERE job IN (SELECT id FROM jobs WHERE run = ?)",
    "DELETE FROM attempts WHERE job IN (SELECT id FROM jobs WHERE run = ?)",
    "DELETE FROM jobs WHERE run = ?",
    "DELETE FROM runs WHERE id = ?",
    """DELETE FROM events WHERE run = ?1 AND kind <> 'RunPruned'
        AND seq < (SELECT max(seq) FROM events WHERE run = ?1 AND kind = 'RunPruned')""",
)
