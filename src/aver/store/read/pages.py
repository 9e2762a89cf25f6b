"""Pages of runs and of a run's jobs, by filter, order and cursor: for a reader that goes on where it stopped.

A cursor is the last row's key and number, so a page costs the same wherever it is. Jobs are read by their run's index,
and whole rows only of those that are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from aver.judge.run import WORST_FIRST
from aver.model.codec import dumps
from aver.model.record import Record
from aver.model.states import State
from aver.store.encoding import column_text
from aver.store.read.database import Database

_RANKS = " ".join(f"WHEN '{state.value}' THEN {rank}" for rank, state in enumerate(WORST_FIRST))
_PEAK = "coalesce((SELECT max(peak_bytes) FROM attempts WHERE attempts.job = jobs.id), 0)"
ORDERS = {  # by name: the key in SQL; ?1 is the time
    "id": "id",
    "name": "name",
    "state": f"CASE state {_RANKS} WHEN 'RUNNING' THEN 50 WHEN 'COMPLETED' THEN 90 WHEN 'SKIPPED' THEN 80 ELSE 60 END",
    "start": "coalesce(started_at, 1e18)",
    "time": "coalesce(elapsed_s, ?1 - started_at, 0)",
    "mem": _PEAK,
    "attempt": "attempt",
}


class JobQuery(Record):
    """Jobs of a run; None: no matter. `text`: in the name or reason, a pattern such as `train*`, or a number.
    `group`: of one definition, by the first job and the place of what made it."""

    run: int
    states: frozenset[State] | None = None
    text: str | None = None
    group: tuple[int, int] | None = None
    order: str = "id"
    is_down: bool = False
    after: tuple[Any, int] | None = None


class RunQuery(Record):
    """Runs, newest first; None: no matter. `before`: the last number of the page before."""

    states: frozenset[State] | None = None
    text: str | None = None
    folder: str | None = None
    since: float | None = None
    engine: str | None = None
    before: int | None = None


class NumberPage(Record):
    """Numbers in their order; `total` of all that the filter lets through, None: not counted; `next` goes on."""

    numbers: tuple[int, ...]
    total: int | None
    next: tuple[Any, int] | None


def job_page(database: Database, query: JobQuery, limit: int, now: float) -> NumberPage:
    chosen = ["?1 = ?1", "run = ?"]
    parameters: list[Any] = [now, query.run]
    _add_states(query.states, chosen, parameters)
    if query.group is not None:
        chosen.append("first_job = ? AND spec = ?")
        parameters += query.group
    if query.text:
        chosen.append(f"({_like('name', query.text)} OR {_like('reason', query.text)} OR id = ?)")
        parameters += [_pattern(query.text), _pattern(query.text), _number(query.text)]
    where = f"FROM jobs INDEXED BY jobs_run WHERE {' AND '.join(chosen)}"
    total = int(database.fetch(f"SELECT count(*) {where}", parameters)[0][0])
    key, sign, turn = ORDERS[query.order], "<" if query.is_down else ">", "DESC" if query.is_down else "ASC"
    if query.after is not None:
        where += f" AND ({key}, id) {sign} (?, ?)"
        parameters += query.after
    text = f"SELECT {key} AS key, id {where} ORDER BY key {turn}, id {turn} LIMIT ?"
    rows = database.fetch(text, (*parameters, limit + 1))
    following = tuple(rows[limit - 1]) if len(rows) > limit else None
    return NumberPage(tuple(row[1] for row in rows[:limit]), total, following)


def run_page(database: Database, query: RunQuery, limit: int) -> NumberPage:
    chosen: list[str] = ["1"]
    parameters: list[Any] = []
    _add_states(query.states, chosen, parameters)
    if query.before is not None:
        chosen.append("id < ?")
        parameters.append(query.before)
    if query.text:
        chosen.append(f"({_like('name', query.text)} OR id = ?)")
        parameters += [_pattern(query.text), _number(query.text)]
    if query.folder:
        chosen.append(_like("folder", query.folder))
        parameters.append(_pattern(query.folder))
    if query.since is not None:
        chosen.append("(ended_at IS NULL OR ended_at >= ?)")
        parameters.append(query.since)
    where = " AND ".join(chosen)
    if query.engine:
        text = f"SELECT id FROM runs INDEXED BY runs_engines WHERE engines = ? AND {where} ORDER BY id DESC LIMIT ?"
        found = [database.fetch(text, (one, *parameters, limit + 1)) for one in _engine_sets(database, query.engine)]
        rows = sorted((row[0] for some in found for row in some), reverse=True)[: limit + 1]
    else:
        text = f"SELECT id FROM runs WHERE {where} ORDER BY id DESC LIMIT ?"
        rows = [row[0] for row in database.fetch(text, (*parameters, limit + 1))]
    following = (rows[limit - 1], rows[limit - 1]) if len(rows) > limit else None
    return NumberPage(tuple(rows[:limit]), None, following)


def _engine_sets(database: Database, engine: str) -> list[str]:
    """The values of `engines` that have this one; they are few, and found one after the other in their index."""
    sets = """WITH RECURSIVE found(one) AS (SELECT min(engines) FROM runs
        UNION ALL SELECT (SELECT min(engines) FROM runs WHERE engines > one) FROM found WHERE one IS NOT NULL)
        SELECT one FROM found WHERE instr(one, ?) > 0"""
    return [row[0] for row in database.fetch(sets, (dumps(column_text(engine)),))]


def _add_states(states: Iterable[State] | None, chosen: list[str], parameters: list[Any]) -> None:
    if states is not None:
        words = [state.value for state in states]
        chosen.append(f"state IN ({', '.join('?' * len(words))})")
        parameters += words


def _like(column: str, text: str) -> str:
    """Whether the column has the text, in small or capital letters; LIKE is the quicker of the two."""
    return f"lower({column}) GLOB ?" if _is_glob(text) else f"{column} LIKE ? ESCAPE '\\'"


def _is_glob(text: str) -> bool:
    return any(sign in text for sign in "*?")


def _pattern(text: str) -> str:
    """As GLOB or LIKE reads it: a text without signs is looked for anywhere."""
    known = column_text(text)
    if _is_glob(text):
        return known.lower()
    return "%" + re.sub(r"([%_\\])", r"\\\1", known) + "%"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else -1
