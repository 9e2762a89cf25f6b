"""Reads for everybody: with or without a coordinator, never in its way.

A Reader opens `mode=ro`, never checkpoints, and reads everything that it returns at once or page by page, so
that it holds no lock between two calls. What is shown was committed. Each call sees one consistent state.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from aver.errors import AverError
from aver.model.codec import decode, loads
from aver.model.events import Event, Fingerprinted, FlowReplaced, JobsGenerated, PersonAsked, RunSubmitted
from aver.model.job import NotifyRule, Origin, Request, Submission
from aver.model.record import replace
from aver.model.states import UNSETTLED, State
from aver.store.encoding import column_text
from aver.store.open import check_absent, connect, read_version, reading_failed, show_path
from aver.store.read.decoding import ATTEMPT, JOB, RUN, STEP, TASK, Decoder
from aver.store.read.outcomes import OUTCOMES_SQL, Outcome
from aver.store.read.rows import AttemptRow, GroupRow, JobRow, RunRow, StepRow, StoredEvent, TaskRow
from aver.store.read.sketch import Sketch
from aver.store.read.step_use import STEP_USE_SQL, StepUse, fold_steps, outcome_with_steps, with_steps

Row = TypeVar("Row")

EVENTS_PER_PAGE = 1000

_UNSETTLED_SQL = ", ".join(f"'{state}'" for state in sorted(UNSETTLED))

_UNSETTLED = "(" + ", ".join(f"'{state}'" for state in sorted(UNSETTLED)) + ")"


class Reader:
    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._rows = Decoder(path)

    @classmethod
    def open(cls, path: Path) -> Reader | None:
        """Return None when there is no database yet; raise UsageError for a newer one, AverError for a damaged one."""
        try:
            if path.stat().st_size == 0:
                return None
        except FileNotFoundError:
            check_absent(path)
            return None
        except OSError as error:
            raise AverError(f"can't open {show_path(path)}: {error.strerror}") from None
        connection = None
        try:
            connection = connect(path, "ro")
            try:
                version = read_version(connection, path)
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
                    raise
                _finish_rollback(path)
                version = read_version(connection, path)
        except OSError as error:
            raise AverError(f"can't open {show_path(path)}: {error.strerror}") from None
        except (sqlite3.Error, AverError) as error:
            if connection is not None:
                connection.close()
            raise (reading_failed(path, error) if isinstance(error, sqlite3.Error) else error) from None
        if version == 0:
            connection.close()
            return None
        return cls(path, connection)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, run: int) -> RunRow | None:
        return self._one(self._rows.run, f"SELECT {RUN} FROM runs WHERE id = ?", (run,))

    def run_by_key(self, key: str) -> RunRow | None:
        """The run that was submitted with this key."""
        return self._one(self._rows.run, f"SELECT {RUN} FROM runs WHERE key = ? ORDER BY id LIMIT 1", (key,))

    def runs(self, limit: int | None = None, states: Iterable[State] | None = None) -> list[RunRow]:
        """Newest first."""
        chosen, parameters = _in_states("state", states)
        text = f"SELECT {RUN} FROM runs WHERE {chosen} ORDER BY id DESC LIMIT ?"
        return self._all(self._rows.run, text, (*parameters, _limit(limit)))

    def run_numbers(self) -> set[int]:
        return {row[0] for row in self._fetch("SELECT id FROM runs")}

    def unsettled_runs(self) -> list[int]:
        return [row[0] for row in self._fetch(f"SELECT id FROM runs WHERE state IN ({_UNSETTLED_SQL}) ORDER BY id")]

    def job(self, job: int) -> JobRow | None:
        return self._one(self._rows.job, f"SELECT {JOB} FROM jobs WHERE id = ?", (job,))

    def jobs(
        self,
        run: int | None = None,
        states: Iterable[State] | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> list[JobRow]:
        """By number; `after` leaves out that job and all before it."""
        chosen, parameters = _in_states("state", states)
        if run is not None:
            chosen, parameters = f"run = ? AND {chosen}", (run, *parameters)
        if after is not None:
            chosen, parameters = f"{chosen} AND id > ?", (*parameters, after)
        text = f"SELECT {JOB} FROM jobs WHERE {chosen} ORDER BY id LIMIT ?"
        return self._all(self._rows.job, text, (*parameters, _limit(limit)))

    def jobs_with_failed_steps(self, run: int) -> list[JobRow]:
        """Those of the run whose DerivedExitCode is not 0, or not known."""
        return self._all(self._rows.job, f"SELECT {JOB} FROM jobs WHERE run = ? AND derived IS NOT 0", (run,))

    def newest_jobs(self, limit: int, states: Iterable[State] | None = None) -> list[JobRow]:
        """Newest first, over all runs."""
        chosen, parameters = _in_states("state", states)
        text = f"SELECT {JOB} FROM jobs WHERE {chosen} ORDER BY id DESC LIMIT ?"
        return self._all(self._rows.job, text, (*parameters, limit))

    def jobs_by_id(self, ids: Iterable[int]) -> dict[int, JobRow]:
        """The jobs that there are, by number."""
        text = f"SELECT {JOB} FROM jobs WHERE id IN (SELECT value FROM json_each(?))"
        return {row.id: row for row in self._all(self._rows.job, text, (json.dumps(list(ids)),))}

    def find(self, name: str, run: int | None = None) -> list[JobRow]:
        """All jobs of exactly that name, newest first. Bytes that are not UTF-8 are found as they are stored."""
        name = column_text(name)
        if run is None:
            return self._all(self._rows.job, f"SELECT {JOB} FROM jobs WHERE name = ? ORDER BY id DESC", (name,))
        text = f"SELECT {JOB} FROM jobs WHERE run = ? AND name = ? ORDER BY id DESC"
        return self._all(self._rows.job, text, (run, name))

    def counts(self, run: int) -> dict[State, int]:
        """How many jobs of the run are in each state."""
        rows = self._fetch("SELECT state, count(*) FROM jobs WHERE run = ? GROUP BY state", (run,))
        return {self._rows.state(word, f"a job of run {run}"): count for word, count in rows}

    def groups(self, run: int) -> list[GroupRow]:
        """The jobs of the run by what made them and by state: few rows, however many jobs there are."""
        text = (
            "SELECT first_job, spec, state, count(*), min(id), min(name), min(reason), max(exit), min(started_at), "
            "max(ended_at), max(elapsed_s) FROM jobs WHERE run = ? GROUP BY first_job, spec, state "
            "ORDER BY first_job, spec"
        )
        return self._all(self._rows.group, text, (run,))

    def attempts(self, job: int) -> list[AttemptRow]:
        """By number; what each used is that of its script and its steps."""
        text = f"SELECT {ATTEMPT} FROM attempts AS a WHERE a.job = ? ORDER BY a.attempt"
        steps = self._step_use("id = ?", job)
        return [with_steps(row, steps) for row in self._all(self._rows.attempt, text, (job,))]

    def attempts_of_run(self, run: int) -> list[AttemptRow]:
        """By job and attempt; what each used is that of its script and its steps."""
        text = (
            f"SELECT {ATTEMPT} FROM jobs JOIN attempts AS a ON a.job = jobs.id "
            "WHERE jobs.run = ? ORDER BY a.job, a.attempt"
        )
        steps = self._step_use("run = ?", run)
        return [with_steps(row, steps) for row in self._all(self._rows.attempt, text, (run,))]

    def outcomes(self, run: int) -> list[Outcome]:
        """Every job with each of its attempts, by job and attempt."""
        rows = list(map(Outcome._make, self._fetch(OUTCOMES_SQL, (run,))))
        for word in {row.job_state for row in rows} | {row.state for row in rows if row.state is not None}:
            self._rows.state(word, f"a job of run {run}")
        steps = self._step_use("run = ?", run)
        return [outcome_with_steps(row, steps) for row in rows] if steps else rows

    def _step_use(self, which: str, number: int) -> StepUse:
        return fold_steps(self._fetch(STEP_USE_SQL.format(which=which), (number,)))

    def request(self, text: str) -> Request:
        """The request of an attempt as `outcomes` has it."""
        return self._rows.request(text, "an attempt")

    def steps(self, job: int, attempt: int | None = None) -> list[StepRow]:
        """By attempt and number."""
        chosen, parameters = ("", (job,)) if attempt is None else (" AND attempt = ?", (job, attempt))
        text = f"SELECT {STEP} FROM steps WHERE job = ?{chosen} ORDER BY attempt, step"
        return self._all(self._rows.step, text, parameters)

    def steps_of_jobs(self, jobs: Iterable[int]) -> list[StepRow]:
        """Of many jobs, by job, attempt and number."""
        text = f"SELECT {STEP} FROM steps WHERE job IN (SELECT value FROM json_each(?)) ORDER BY job, attempt, step"
        return self._all(self._rows.step, text, (json.dumps(list(jobs)),))

    def tasks(self, job: int, attempt: int, step: int) -> list[TaskRow]:
        """The tasks that have ended, by number."""
        text = f"SELECT {TASK} FROM tasks WHERE job = ? AND attempt = ? AND step = ? ORDER BY task"
        return self._all(self._rows.task, text, (job, attempt, step))

    def submission(self, run: int) -> Submission | None:
        """What was submitted; None when there is no such run."""
        for stored in self._flow_events(run, "RunSubmitted"):
            if isinstance(stored.event, RunSubmitted):
                return self._with_newest_flow(run, stored.event.submission)
        return None

    def origin(self, run: int) -> Origin | None:
        """Who submitted the run; its flow, which may be large, is not made."""
        found = self.sketch(run)
        return None if found is None else found.origin

    def sketch(self, run: int) -> Sketch | None:
        """What was submitted, with the newest flow; a job is made when it is asked for. None: there is no such run."""
        text = (
            "SELECT data FROM events INDEXED BY events_flow "
            "WHERE run = ? AND kind IN ('RunSubmitted', 'JobsGenerated') AND kind = 'RunSubmitted'"
        )
        replaced = (
            "SELECT data FROM events INDEXED BY events_asked WHERE run = ? "
            "AND kind IN ('PersonAsked', 'FlowReplaced') AND kind = 'FlowReplaced' ORDER BY seq DESC LIMIT 1"
        )
        row = self.run(run)
        made = self._fetch(text, (run,))
        if row is None or not made:
            return None
        newer = self._fetch(replaced, (run,)) if row.round > 1 else []
        try:
            submission = json.loads(made[0][0])["submission"]
            flow = json.loads(newer[0][0])["flow"] if newer else submission["flow"]
            return Sketch(decode(Origin, submission["origin"]), flow)
        except (ValueError, LookupError, TypeError) as error:
            raise AverError(f"{show_path(self.path)}: the submission of run {run} can't be read: {error}") from None

    def _with_newest_flow(self, run: int, submission: Submission) -> Submission:
        """A flow is replaced only in a later round: the first needs no search."""
        row = self.run(run)
        if row is None or row.round == 1:
            return submission
        for event in self._of_kind(run, "FlowReplaced"):
            if isinstance(event, FlowReplaced):
                submission = replace(submission, flow=event.flow)
        return submission

    def fingerprints(self, run: int) -> list[Fingerprinted]:
        """What inputs were when jobs completed, in order: of a job that ran again the last one counts."""
        return [event for event in self._of_kind(run, "Fingerprinted") if isinstance(event, Fingerprinted)]

    def generated(self, run: int) -> list[JobsGenerated]:
        """The jobs that were added to the run later, in order."""
        return list(self.generated_by_seq(run).values())

    def generated_by_seq(self, run: int) -> dict[int, JobsGenerated]:
        """The same by their events' numbers."""
        found = self._flow_events(run, "JobsGenerated")
        return {stored.seq: stored.event for stored in found if isinstance(stored.event, JobsGenerated)}

    def asked(self, run: int) -> list[PersonAsked]:
        """What people asked for of the run and its jobs, in order."""
        return list(self.asked_by_seq(run).values())

    def asked_by_seq(self, run: int) -> dict[int, PersonAsked]:
        """The same by their events' numbers."""
        found = self._stored_of_kind(run, "PersonAsked")
        return {stored.seq: stored.event for stored in found if isinstance(stored.event, PersonAsked)}

    def replayed_events(self, run: int) -> Iterator[Event]:
        """In order, what makes the live state of a run: events of the run as a whole, what people asked for, and all
        events of jobs that are not settled, or that were tried again where the run has a budget of retries."""
        text = f"""SELECT seq, at, run, job, attempt, kind, data FROM events WHERE seq IN (
            SELECT seq FROM events WHERE run = ?1 AND kind IN ('RunSubmitted', 'JobsGenerated')
            UNION SELECT seq FROM events WHERE run = ?1 AND kind IN ('PersonAsked', 'FlowReplaced')
            UNION SELECT seq FROM events WHERE job IN (
                SELECT id FROM jobs WHERE run = ?1 AND (state IN {_UNSETTLED} OR (attempt > 1 AND EXISTS (
                    SELECT 1 FROM events WHERE run = ?1 AND kind IN ('RunSubmitted', 'JobsGenerated')
                    AND json_extract(data, '$.submission.flow.retry_budget') IS NOT NULL))))
            ) ORDER BY seq"""
        for row in self._fetch(text, (run,)):
            yield self._rows.event(row).event

    def settled_jobs(self, run: int) -> list[tuple[int, State, int]]:
        """Number, state and number of attempts of the run's settled jobs."""
        text = f"SELECT id, state, attempt FROM jobs WHERE run = ? AND state NOT IN {_UNSETTLED}"
        rows = self._fetch(text, (run,))
        states = {word: self._rows.state(word, f"a job of run {run}") for word in {row[1] for row in rows}}
        return [(job, states[word], attempts) for job, word, attempts in rows]

    def _of_kind(self, run: int, kind: str) -> list[Event]:
        return [stored.event for stored in self._stored_of_kind(run, kind)]

    def _stored_of_kind(self, run: int, kind: str) -> list[StoredEvent]:
        text = "SELECT seq, at, run, job, attempt, kind, data FROM events WHERE run = ? AND kind = ? ORDER BY seq"
        return self._all(self._rows.event, text, (run, kind))

    def verdicts(self, after: int, limit: int) -> list[StoredEvent]:
        """Events numbered above `after` by which a job may have got a verdict, or a run may have moved."""
        text = (
            "SELECT seq, at, run, job, attempt, kind, data FROM events WHERE seq > ? AND (kind = 'RunMoved' OR "
            "(kind IN ('Observed', 'JobMoved') AND instr(data, '\"verdict\"'))) ORDER BY seq LIMIT ?"
        )
        return self._all(self._rows.event, text, (after, limit))

    def notify_facts(self, run: int) -> tuple[tuple[NotifyRule, ...], Origin] | None:
        """Whom the run's flow wants to be told, and where the run comes from; without reading its jobs."""
        text = (
            "SELECT json_extract(data, '$.submission.flow.notify'), json_extract(data, '$.submission.origin'), "
            "json_extract(data, '$.flow.notify'), kind FROM events WHERE run = ? "
            "AND kind IN ('RunSubmitted', 'FlowReplaced') ORDER BY seq"
        )
        rows = self._fetch(text, (run,))
        if not rows:
            return None
        rules = rows[-1][0] if rows[-1][3] == "RunSubmitted" else rows[-1][2]
        try:
            known = loads(tuple[NotifyRule, ...], rules or "[]")
            return known, loads(Origin, rows[0][1])
        except (ValueError, TypeError) as error:
            raise AverError(f"{show_path(self.path)}: the submission of run {run} can't be read: {error}") from None

    def pruned(self) -> dict[int, float]:
        """When the logs of runs were last cut, by run."""
        text = (
            "SELECT run, max(at) FROM events WHERE kind IN ('PersonAsked', 'FlowReplaced') AND kind = 'PersonAsked' "
            "AND json_extract(data, '$.what') = 'prune' GROUP BY run"
        )
        return dict(self._fetch(text))

    def last_seq(self) -> int:
        return int(self._fetch("SELECT coalesce(max(seq), 0) FROM events")[0][0])

    def events(
        self, run: int | None = None, job: int | None = None, after: int = 0, limit: int | None = None
    ) -> Iterator[StoredEvent]:
        """In order, those numbered above `after`; read page by page."""
        chosen = "".join([" AND run = ?" if run is not None else "", " AND job = ?" if job is not None else ""])
        parameters = tuple(value for value in (run, job) if value is not None)
        text = f"SELECT seq, at, run, job, attempt, kind, data FROM events WHERE seq > ?{chosen} ORDER BY seq LIMIT ?"
        left = limit
        while left is None or left > 0:
            page = EVENTS_PER_PAGE if left is None else min(left, EVENTS_PER_PAGE)
            rows = self._fetch(text, (after, *parameters, page))
            for row in rows:
                yield self._rows.event(row)
            if len(rows) < page:
                return
            after = rows[-1][0]
            left = None if left is None else left - page

    def _flow_events(self, run: int, kind: str) -> list[StoredEvent]:
        text = (
            "SELECT seq, at, run, job, attempt, kind, data FROM events INDEXED BY events_flow "
            "WHERE run = ? AND kind IN ('RunSubmitted', 'JobsGenerated') AND kind = ? ORDER BY seq"
        )
        return self._all(self._rows.event, text, (run, kind))

    def _fetch(self, text: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._connection.execute(text, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
                raise reading_failed(self.path, error) from None
        except sqlite3.Error as error:
            raise reading_failed(self.path, error) from None
        try:
            _finish_rollback(self.path)
            return self._connection.execute(text, parameters).fetchall()
        except sqlite3.Error as error:
            raise reading_failed(self.path, error) from None

    def _all(self, make: Callable[[Any], Row], text: str, parameters: Sequence[Any]) -> list[Row]:
        return [make(row) for row in self._fetch(text, parameters)]

    def _one(self, make: Callable[[Any], Row], text: str, parameters: Sequence[Any]) -> Row | None:
        rows = self._fetch(text, parameters)
        return make(rows[0]) if rows else None


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _in_states(column: str, states: Iterable[State] | None) -> tuple[str, tuple[Any, ...]]:
    if states is None:
        return "1", ()
    words = tuple(state.value for state in states)
    return f"{column} IN ({', '.join('?' * len(words))})", words


def _finish_rollback(path: Path) -> None:
    """A writer with a rollback journal was killed in a commit: undo its half, which needs a writable connection."""
    connection = connect(path, "rw")
    try:
        connection.execute("PRAGMA user_version").fetchone()
    finally:
        connection.close()
