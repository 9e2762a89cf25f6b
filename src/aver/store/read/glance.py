"""Reads for commands that are called in loops: rows as they are, with as few imports as can be.

No dataclasses, no JSON module, no path objects: making them costs more than the reading. What is returned is plain,
and what it means is said by the reader of it (`aver.slurm_cli.facts`); `aver.store.read.reader` is for everybody else.
As there: opens `mode=ro`, never checkpoints, holds no lock between two calls.
"""

from __future__ import annotations

import os
import sqlite3

from aver.errors import AverError
from aver.store.schema import VERSION

TYPE_CHECKING = False  # `typing` costs as much as the rest of the start
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

UNSETTLED = ("PENDING", "SUBMITTED", "RUNNING", "SUSPENDED", "COMPLETING", "SETTLING")
_UNSETTLED_SQL = ", ".join(f"'{word}'" for word in UNSETTLED)
_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~")
# A peak of 0 is one that the kernel had not counted yet: not known.
_ATTEMPT = "a.attempt, a.request, a.node, a.user_s, a.sys_s, nullif(a.peak_bytes, 0), a.planned_at, a.state"
_JOB = "j.id, j.run, j.name, j.first_job, j.spec, j.member, j.submitted_at, j.attempt"
_NEWEST = (
    f"{_JOB}, j.state, j.reason, j.exit, j.warnings, j.started_at, j.ended_at, j.elapsed_s, j.derived, 0, {_ATTEMPT}"
)
_EACH = f"{_JOB}, a.state, a.reason, a.exit, a.warnings, a.started_at, a.ended_at, a.elapsed_s, NULL, 1, {_ATTEMPT}"
_JOB_COLUMNS = (
    "id", "run", "name", "first_job", "spec", "member", "submitted_at", "newest", "state", "reason", "exit", "warnings",
    "started_at", "ended_at", "elapsed_s", "derived", "is_earlier", "attempt", "request", "node", "user_s", "sys_s",
    "peak_bytes", "planned_at", "attempt_state",
)  # fmt: skip
_STEP_COLUMNS = (
    "job", "attempt", "step", "name", "tasks", "spec", "started_at", "state", "reason", "exit", "ended_at", "derived",
    "user_s", "sys_s", "peak_bytes", "peak_task", "peak_mean", "ended_tasks",
)  # fmt: skip
BUSY_TIMEOUT_S = 30.0


class JobGlance:
    """A job with its newest attempt, or with one of the older ones."""

    __slots__ = _JOB_COLUMNS
    id: int
    run: int
    name: str
    first_job: int
    spec: int
    member: int
    submitted_at: float
    newest: int
    state: str
    reason: str
    exit: int | None
    warnings: str | None  # a JSON list
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    derived: int | None  # None: nobody saw a step's exit; of one of its attempts: to be worked out from the steps
    is_earlier: int  # 1: one of the job's attempts, and not the job as it is now
    attempt: int | None
    request: str | None
    node: str | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    planned_at: float | None
    attempt_state: str | None

    def __init__(self, row: Sequence[Any]) -> None:
        for name, value in zip(_JOB_COLUMNS, row, strict=True):
            setattr(self, name, value)


class StepGlance:
    """A step with what its ended tasks used together."""

    __slots__ = _STEP_COLUMNS
    job: int
    attempt: int
    step: int
    name: str
    tasks: int
    spec: str
    started_at: float
    state: str
    reason: str
    exit: int | None
    ended_at: float | None
    derived: int | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    peak_task: int | None
    peak_mean: float | None
    ended_tasks: int

    def __init__(self, row: Sequence[Any]) -> None:
        for name, value in zip(_STEP_COLUMNS, row, strict=True):
            setattr(self, name, value)


class Glance:
    def __init__(self, path: str, connection: sqlite3.Connection, version: int) -> None:
        self.path = path
        self._connection = connection
        self._version = version

    @classmethod
    def open(cls, path: str) -> Glance | None:
        """Return None when there is no database yet; raise AverError for one that can't be read."""
        try:
            if os.stat(path).st_size == 0:
                return None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise AverError(f"can't open {path}: {error.strerror}") from None
        quoted = "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in os.fsencode(os.path.abspath(path)))
        try:
            connection = _connect(f"file:{quoted}?mode=ro")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.Error:
            connection, version = _open_carefully(path)
        if version > VERSION:
            connection, version = _open_carefully(path)
        if version == 0:
            connection.close()
            return None
        return cls(path, connection, version)

    def close(self) -> None:
        self._connection.close()

    def unsettled(self) -> list[JobGlance]:
        """All jobs that are not settled, by number."""
        chosen = f"j.run IN (SELECT id FROM runs WHERE state IN ({_UNSETTLED_SQL})) AND j.state IN ({_UNSETTLED_SQL})"
        return self._jobs(chosen, ())

    def since(self, at: float) -> list[JobGlance]:
        """All jobs that are not settled, or ended at `at` or later."""
        return self._jobs(f"j.state IN ({_UNSETTLED_SQL}) OR j.ended_at >= ?", (at,))

    def between(self, start: float, end: float) -> list[JobGlance]:
        """All jobs that were submitted before `end`, and had not ended before `start`."""
        return self._jobs("j.submitted_at <= ? AND (j.ended_at IS NULL OR j.ended_at >= ?)", (end, start))

    def numbered(self, numbers: Iterable[int]) -> list[JobGlance]:
        """The jobs of these numbers, and all jobs of the runs of these numbers."""
        text = _array(numbers)
        within = "IN (SELECT value FROM json_each(?))"
        return self._jobs(f"j.id {within} OR j.run {within}", (text, text))

    def attempts(self, jobs: Iterable[int]) -> list[JobGlance]:
        """Each attempt of these jobs, by job and attempt."""
        text = (
            f"SELECT {_EACH} FROM jobs AS j JOIN attempts AS a ON a.job = j.id "
            "WHERE j.id IN (SELECT value FROM json_each(?)) ORDER BY j.id, a.attempt"
        )
        return [JobGlance(row) for row in self._fetch(text, (_array(jobs),))]

    def steps(self, jobs: Iterable[int]) -> list[StepGlance]:
        """The steps of these jobs, by job, attempt and number."""
        text = (
            "SELECT s.job, s.attempt, s.step, s.name, s.tasks, s.spec, s.started_at, s.state, s.reason, s.exit, "
            "s.ended_at, s.derived, sum(t.user_s), sum(t.sys_s), max(nullif(t.peak_bytes, 0)), t.task, "
            "avg(nullif(t.peak_bytes, 0)), "
            "count(t.task) FROM steps AS s LEFT JOIN tasks AS t "
            "ON t.job = s.job AND t.attempt = s.attempt AND t.step = s.step "
            "WHERE s.job IN (SELECT value FROM json_each(?)) GROUP BY s.job, s.attempt, s.step "
            "ORDER BY s.job, s.attempt, s.step"
        )  # SQLite takes t.task from the row that has the maximum
        return [StepGlance(row) for row in self._fetch(text, (_array(jobs),))]

    def flows(self, runs: Iterable[int]) -> list[tuple[int, str, str]]:
        """Run, kind and data of the events that made the jobs of these runs, in order."""
        text = (
            "SELECT run, kind, data FROM events INDEXED BY events_flow WHERE run IN (SELECT value FROM json_each(?)) "
            "AND kind IN ('RunSubmitted', 'JobsGenerated') ORDER BY seq"
        )
        return self._fetch(text, (_array(runs),))

    def asked(self, runs: Iterable[int]) -> list[tuple[float, int, int | None, str, str]]:
        """Time, run, job, kind and data of what people asked for and of flows that were replaced, in order."""
        indexed = "INDEXED BY events_asked " if self._version >= 3 else ""
        text = (
            f"SELECT at, run, job, kind, data FROM events {indexed}WHERE run IN (SELECT value FROM json_each(?)) "
            "AND kind IN ('PersonAsked', 'FlowReplaced') ORDER BY seq"
        )
        return self._fetch(text, (_array(runs),))

    def active_in(self, run: int) -> int:
        """How many jobs of a run have started and are not settled."""
        text = f"SELECT count(*) FROM jobs WHERE run = ? AND state IN ({_UNSETTLED_SQL}) AND started_at IS NOT NULL"
        return int(self._fetch(text, (run,))[0][0])

    def observed(self, job: int, attempt: int) -> list[tuple[float, str]]:
        """Time and data of what sources said of an attempt, in order."""
        text = "SELECT at, data FROM events WHERE job = ? AND attempt = ? AND kind = 'Observed' ORDER BY seq"
        return self._fetch(text, (job, attempt))

    def newest_number(self) -> int:
        """Above every number that a run or job ever had."""
        rows = self._fetch("SELECT value FROM meta WHERE key = 'next_id'", ())
        return int(rows[0][0]) if rows else 1

    def _jobs(self, chosen: str, parameters: Sequence[Any]) -> list[JobGlance]:
        text = (
            f"SELECT {_NEWEST} FROM jobs AS j LEFT JOIN attempts AS a ON a.job = j.id AND a.attempt = j.attempt "
            f"WHERE {chosen} ORDER BY j.id"
        )
        return [JobGlance(row) for row in self._fetch(text, parameters)]

    def _fetch(self, text: str, parameters: Sequence[Any]) -> list[Any]:
        try:
            return self._connection.execute(text, parameters).fetchall()
        except sqlite3.Error as error:
            raise AverError(f"can't read {self.path}: {error}") from None


def _array(numbers: Iterable[int]) -> str:
    return "[" + ",".join([str(number) for number in numbers if -(1 << 63) <= number < 1 << 63]) + "]"


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)


def _open_carefully(path: str) -> tuple[sqlite3.Connection, int]:
    """As every other reader opens: a folder that can't be written to, a rollback that was left, and good sentences."""
    from pathlib import Path

    from aver.store.open import connect
    from aver.store.read.reader import Reader

    reader = Reader.open(Path(path))
    if reader is None:
        return sqlite3.connect(":memory:"), 0
    reader.close()
    connection = connect(Path(path), "ro")
    return connection, int(connection.execute("PRAGMA user_version").fetchone()[0])
