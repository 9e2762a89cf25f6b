"""Which jobs a listing shows, of a home that may have a million of them.

Settled jobs are found in one index that has all that they can be chosen and sorted by (`jobs_ended`, and
`attempts_ended` for memory), unsettled ones in another (`jobs_unsettled`). Whole rows are read only of jobs that are
shown. A database of an earlier version has no such indices: the same queries then read its rows.
"""

from __future__ import annotations

from typing import Any

from aver.model.record import Record
from aver.model.states import UNSETTLED, State
from aver.store.encoding import column_text
from aver.store.read.database import Database

SORTS = ("time", "mem", "start", "id")
BY_NUMBER = "number"  # the smallest first
INDEXED_SINCE = 8  # the schema's version
ENDED, UNENDED, MEASURED = "jobs_ended", "jobs_unsettled", "attempts_ended"
_KEYS = {"id": "id", BY_NUMBER: "-id", "start": "coalesce(started_at, 0)", "time": "coalesce(elapsed_s, 0)"}
_UNENDED_KEYS = _KEYS | {"time": "coalesce(?1 - started_at, 0)", "mem": "0"}
_PEAK = "coalesce((SELECT max(peak_bytes) FROM attempts WHERE job = jobs.id), 0)"


class Wanted(Record):
    """Which jobs; None: no matter. `since`: those that had not ended before. `name`: a pattern such as `train*`."""

    run: int | None = None
    states: frozenset[State] | None = None
    since: float | None = None
    name: str | None = None
    sort: str = "id"  # one of SORTS, the largest first; or BY_NUMBER


def find_jobs(database: Database, wanted: Wanted, limit: int | None, now: float) -> tuple[list[int], int]:
    """The numbers of the jobs in their order, at most `limit` of them, and how many there are in all."""
    total = 0
    keyed: list[tuple[float, int]] = []
    for source in (ENDED, UNENDED):
        if not _states(wanted, source == ENDED):
            continue
        chosen, parameters = _conditions(wanted, source == ENDED)
        where = f"FROM jobs{_by(database, source)} WHERE {' AND '.join(chosen)}"
        total += int(database.fetch(f"SELECT count(*) {where}", (now, *parameters))[0][0])
        keys = _UNENDED_KEYS if source == UNENDED else _KEYS | {"mem": _PEAK}
        largest = _largest(database, wanted, limit) if source == ENDED else None
        if largest is None:
            text = f"SELECT {keys[wanted.sort]} AS key, id {where} ORDER BY key DESC, id DESC LIMIT {_most(limit)}"
            largest = database.fetch(text, (now, *parameters))
        keyed += largest
    keyed.sort(reverse=True)
    return [job for _, job in keyed[:limit]], total


def _conditions(wanted: Wanted, is_ended: bool) -> tuple[list[str], list[Any]]:
    """What a row must be; ?1 is the time."""
    chosen = ["?1 = ?1", "ended_at IS NOT NULL" if is_ended else "ended_at IS NULL"]
    parameters: list[Any] = []
    if wanted.states is not None or not is_ended:
        words = [f"'{state.value}'" for state in _states(wanted, is_ended)]
        chosen.append(f"state IN ({', '.join(words)})")
    if wanted.run is not None:
        chosen.append("run = ?")
        parameters.append(wanted.run)
    if wanted.since is not None and is_ended:
        chosen.append("ended_at >= ?")
        parameters.append(wanted.since)
    if wanted.name is not None:
        name = column_text(wanted.name)
        chosen.append("(name GLOB ? OR name = ? OR substr(name, 1, ?) = ?)")
        parameters += [name.replace("[!", "[^"), name, len(name) + 1, f"{name}["]
    return chosen, parameters


def _states(wanted: Wanted, is_ended: bool) -> list[State]:
    """Those of the wanted states that are settled, or those that are not."""
    found = [state for state in State if (state in UNSETTLED) is not is_ended]
    return found if wanted.states is None else [state for state in found if state in wanted.states]


def _largest(database: Database, wanted: Wanted, limit: int | None) -> list[tuple[float, int]] | None:
    """By memory, of all settled jobs; None where so many attempts were not measured that others are to be asked."""
    if limit is None or wanted != Wanted(sort="mem"):
        return None
    wider = limit
    while True:
        wider *= 4
        rows = database.fetch(
            f"SELECT peak_bytes, job FROM attempts{_by(database, MEASURED)} "
            f"WHERE ended_at IS NOT NULL ORDER BY peak_bytes DESC LIMIT {wider}"
        )
        found: dict[int, float] = {}
        for peak, job in rows:
            if peak is not None:
                found.setdefault(job, peak)
        if len(found) >= limit:
            return [(peak, job) for job, peak in found.items()]
        if len(rows) < wider:
            return None


def _by(database: Database, index: str) -> str:
    return f" INDEXED BY {index}" if database.version >= INDEXED_SINCE else ""


def _most(limit: int | None) -> int:
    return -1 if limit is None else limit
