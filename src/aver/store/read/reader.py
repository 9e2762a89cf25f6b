"""Typed reads of the store, for everybody but Slurm's commands that are called in loops (`store.read.light`)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any

from aver.errors import AverError
from aver.model.codec import decode, loads
from aver.model.events import (
    Event,
    Fingerprinted,
    FlowReplaced,
    JobsEnded,
    JobsGenerated,
    PersonAsked,
    PoolSized,
    RunSubmitted,
)
from aver.model.job import NotifyRule, Origin, Request, Submission
from aver.model.record import replace
from aver.model.states import State
from aver.store.columns import Outcome, select
from aver.store.encoding import column_text
from aver.store.open import show_path
from aver.store.read import queries
from aver.store.read.database import Database
from aver.store.read.decoder import Decoder, Made
from aver.store.read.light import UNSETTLED_SQL
from aver.store.read.rows import (
    AttemptRow,
    GroupRow,
    JobRow,
    RunRow,
    StepRow,
    StoredEvent,
    TaskRow,
    each_move,
    move_of,
)
from aver.store.read.sketch import Sketch
from aver.store.read.step_use import STEP_USE_SQL, StepUse, fold_steps, with_steps
from aver.store.schema import VERSION

EVENTS_PER_PAGE = 1000

_ASKED = "kind IN ('PersonAsked', 'FlowReplaced')"
_GIVEN = "NOT (state = 'PENDING' AND reason = 'None')"  # to an engine: what is only planned is not an attempt


class Reader(Database):
    """Typed reads. What is returned is read at once, or page by page."""

    def __init__(self, path: Path | str, connection: sqlite3.Connection, version: int = VERSION) -> None:
        super().__init__(path, connection, version)
        self._decoder = Decoder(path)
        self._of_event = f"seq, at, run, job, attempt, kind, data, {self.said_column}"

    def run(self, run: int) -> RunRow | None:
        return self._one(RunRow, "FROM runs WHERE id = ?", (run,))

    def run_by_key(self, key: str) -> RunRow | None:
        """The run that was submitted with this key."""
        return self._one(RunRow, "FROM runs WHERE key = ? ORDER BY id LIMIT 1", (key,))

    def runs_by_key_prefix(self, prefix: str) -> list[int]:
        """The numbers of runs whose keys begin so, oldest first."""
        text = "SELECT id FROM runs WHERE key IS NOT NULL AND key >= ? AND key < ? ORDER BY id"
        return [row[0] for row in self.fetch(text, (prefix, f"{prefix}\U0010ffff"))]

    def runs(self, limit: int | None = None, states: Iterable[State] | None = None) -> list[RunRow]:
        """Newest first."""
        chosen, parameters = _in_states("state", states)
        text = f"FROM runs WHERE {chosen} ORDER BY id DESC LIMIT ?"
        return self._table(RunRow, text, (*parameters, _limit(limit)))

    def runs_among(self, numbers: Iterable[int]) -> set[int]:
        """Those of these numbers that are runs."""
        text = "SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?))"
        return {row[0] for row in self.fetch(text, (json.dumps(list(numbers)),))}

    def count_runs(self, states: Iterable[State] | None = None) -> int:
        chosen, parameters = _in_states("state", states)
        return int(self.fetch(f"SELECT count(*) FROM runs WHERE {chosen}", parameters)[0][0])

    def unsettled_counts(self) -> dict[State, int]:
        """How many jobs of all runs are in each state that is not settled."""
        rows = self.fetch("SELECT state, count(*) FROM jobs WHERE ended_at IS NULL GROUP BY state")
        return {self._decoder.state(word, "a job"): count for word, count in rows}

    def unsettled_runs(self) -> list[int]:
        return [row[0] for row in self.fetch(f"SELECT id FROM runs WHERE state IN {UNSETTLED_SQL} ORDER BY id")]

    def job(self, job: int) -> JobRow | None:
        return self._one(JobRow, "FROM jobs WHERE id = ?", (job,))

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
        text = f"FROM jobs WHERE {chosen} ORDER BY id LIMIT ?"
        return self._table(JobRow, text, (*parameters, _limit(limit)))

    def jobs_with_failed_steps(self, run: int) -> list[JobRow]:
        """Those of the run whose DerivedExitCode is not 0, or not known."""
        return self._table(JobRow, f"FROM jobs WHERE {queries.WITH_STEPS} AND derived IS NOT 0", (run,))

    def count_jobs(self) -> int:
        return int(self.fetch("SELECT count(*) FROM jobs")[0][0])

    def newest_jobs(self, limit: int) -> list[JobRow]:
        """Newest first, over all runs."""
        return self._table(JobRow, "FROM jobs ORDER BY id DESC LIMIT ?", (limit,))

    def listed(self, numbers: Sequence[int]) -> list[JobRow]:
        """The jobs of these numbers, in this order."""
        rows = self.jobs_by_id(numbers)
        return [rows[number] for number in numbers if number in rows]

    def jobs_by_id(self, ids: Iterable[int]) -> dict[int, JobRow]:
        """The jobs that there are, by number."""
        text = "FROM jobs WHERE id IN (SELECT value FROM json_each(?))"
        return {row.id: row for row in self._table(JobRow, text, (json.dumps(list(ids)),))}

    def find(self, name: str, run: int | None = None) -> list[JobRow]:
        """All jobs of exactly that name, newest first. Bytes that are not UTF-8 are found as they are stored."""
        name = column_text(name)
        if run is None:
            return self._table(JobRow, "FROM jobs WHERE name = ? ORDER BY id DESC", (name,))
        text = "FROM jobs WHERE run = ? AND name = ? ORDER BY id DESC"
        return self._table(JobRow, text, (run, name))

    def counts(self, run: int) -> dict[State, int]:
        """How many jobs of the run are in each state."""
        rows = self.fetch(queries.COUNTS if self.version >= 12 else queries.COUNTS_BEFORE_12, (run,))
        counts = {self._decoder.state(word, f"a job of run {run}"): count for word, count in rows if word is not None}
        completed = sum(count for word, count in rows if word is None) - sum(counts.values())  # of all jobs
        return dict(sorted({**counts, State.COMPLETED: completed}.items())) if completed > 0 else counts

    def tally(self, run: int) -> dict[State, tuple[int, int]]:
        """How many jobs of the run are in each state, and how many of those are believed and not verified."""
        text = "SELECT state, count(*), total(verified = 0) FROM jobs WHERE run = ? GROUP BY state"
        rows = self.fetch(text, (run,))
        return {self._decoder.state(word, f"a job of run {run}"): (count, int(few)) for word, count, few in rows}

    def groups(self, run: int) -> list[GroupRow]:
        """The jobs of the run by what made them and by state: few rows, however many jobs there are."""
        text = (
            "SELECT first_job, spec, state, count(*), min(id), min(name), min(reason), max(exit), min(started_at), "
            "max(ended_at), max(elapsed_s) FROM jobs WHERE run = ? GROUP BY first_job, spec, state "
            "ORDER BY first_job, spec"
        )
        return [self._decoder.group(row) for row in self.fetch(text, (run,))]

    def job_times(self, run: int) -> dict[str, tuple[int, str, float | None]]:
        """Number, state as stored and time of the run's jobs, by name: of many jobs little is read."""
        rows = self.fetch("SELECT name, id, state, elapsed_s FROM jobs WHERE run = ?", (run,))
        return {name: (job, state, elapsed_s) for name, job, state, elapsed_s in rows}

    def attempt_keys(self, jobs: Iterable[int]) -> tuple[set[str], set[int], int]:
        """The keys of all attempts of these jobs, those of the jobs that are there, and the next number of all."""
        within, numbers = "IN (SELECT value FROM json_each(?))", (json.dumps(list(jobs)),)
        keys = self.fetch(f"SELECT key FROM attempts WHERE job {within}", numbers)
        there = self.fetch(f"SELECT id FROM jobs WHERE id {within}", numbers)
        ((next_id,),) = self.fetch("SELECT value FROM meta WHERE key = 'next_id'")
        return {row[0] for row in keys}, {row[0] for row in there}, int(next_id)

    def attempts(self, job: int) -> list[AttemptRow]:
        """By number; what each used is that of its script and its steps."""
        text = f"FROM attempts WHERE job = ? AND {_GIVEN} ORDER BY attempt"
        steps = self._step_use("id = ?", job)
        return [with_steps(row, steps, _memory_limit) for row in self._table(AttemptRow, text, (job,))]

    def peaks(self, jobs: Iterable[int]) -> dict[int, int | None]:
        """The peak of memory of each job's newest attempt, with its steps; jobs without an attempt are left out."""
        numbers = json.dumps(list(jobs))
        within = "IN (SELECT value FROM json_each(?))"
        rows = self._table(
            AttemptRow, f"FROM attempts WHERE job {within} AND {_GIVEN} ORDER BY job, attempt", (numbers,)
        )
        steps = fold_steps(self.fetch(STEP_USE_SQL.format(which=f"id {within}"), (numbers,)))
        return {row.job: with_steps(row, steps, _memory_limit).peak_bytes for row in rows}

    def attempts_of_run(self, run: int) -> list[AttemptRow]:
        """By job and attempt; what each used is that of its script and its steps."""
        text = f"FROM attempts WHERE job IN (SELECT id FROM jobs WHERE run = ?) AND {_GIVEN} ORDER BY job, attempt"
        steps = self._step_use(queries.WITH_STEPS, run)
        return [with_steps(row, steps, _memory_limit) for row in self._table(AttemptRow, text, (run,))]

    def outcomes(self, run: int, *, only_failures: bool = False) -> list[Outcome]:
        """Every job with each of its attempts, by job and attempt; or those of jobs that are settled, not COMPLETED."""
        index = "jobs_failed" if only_failures and self.version >= 12 else ""
        return self.outcomes_of(run, queries.FAILED_JOBS if only_failures else "", index=index)

    def outcomes_of(
        self, run: int, which: str, parameters: Sequence[Any] = (), limit: int = -1, index: str = ""
    ) -> list[Outcome]:
        """The same for the jobs `j` that are chosen; `limit` counts rows."""
        text = queries.OUTCOMES.format(indexed=f"INDEXED BY {index}" if index else "", which=which)
        rows = list(map(Outcome, self.fetch(text, (run, *parameters, limit))))
        for word in {row.job_state for row in rows} | {row.state for row in rows if row.state is not None}:
            self._decoder.state(word, f"a job of run {run}")
        steps = self._step_use(queries.WITH_STEPS, run)
        return [with_steps(row, steps, self._outcome_limit) for row in rows] if steps else rows

    def _step_use(self, which: str, number: int) -> StepUse:
        return fold_steps(self.fetch(STEP_USE_SQL.format(which=which), (number,)))

    def _outcome_limit(self, row: Outcome) -> int | None:
        return None if row.request is None else self.request(row.request).mem_bytes

    def request(self, text: str) -> Request:
        """The request of an attempt as `outcomes` has it."""
        return self._decoder.request(text)

    def steps(self, job: int, attempt: int | None = None) -> list[StepRow]:
        """By attempt and number."""
        chosen, parameters = ("", (job,)) if attempt is None else (" AND attempt = ?", (job, attempt))
        text = f"FROM steps WHERE job = ?{chosen} ORDER BY attempt, step"
        return self._table(StepRow, text, parameters)

    def steps_of_jobs(self, jobs: Iterable[int]) -> list[StepRow]:
        """Of many jobs, by job, attempt and number."""
        text = "FROM steps WHERE job IN (SELECT value FROM json_each(?)) ORDER BY job, attempt, step"
        return self._table(StepRow, text, (json.dumps(list(jobs)),))

    def tasks(self, job: int, attempt: int, step: int) -> list[TaskRow]:
        """The tasks that have ended, by number."""
        text = "FROM tasks WHERE job = ? AND attempt = ? AND step = ? ORDER BY task"
        return self._table(TaskRow, text, (job, attempt, step))

    def submission(self, run: int) -> Submission | None:
        """What was submitted; None when there is no such run."""
        for stored in self._flow_events(run, "RunSubmitted"):
            if isinstance(stored.event, RunSubmitted):
                return self._with_newest_flow(run, stored.event.submission)
        return None

    def origin(self, run: int) -> Origin | None:
        """The origin of the run; its flow, which may be large, is not decoded."""
        found = self.sketch(run)
        return None if found is None else found.origin

    def sketch(self, run: int) -> Sketch | None:
        """What was submitted, with the newest flow; a job is made when it is asked for. None: there is no such run."""
        text = (
            "SELECT data FROM events INDEXED BY events_flow "
            "WHERE run = ? AND kind IN ('RunSubmitted', 'JobsGenerated') AND kind = 'RunSubmitted'"
        )
        replaced = (
            f"SELECT data FROM events {self.asked_index} WHERE run = ? "
            "AND kind IN ('PersonAsked', 'FlowReplaced') AND kind = 'FlowReplaced' ORDER BY seq DESC LIMIT 1"
        )
        row = self.run(run)
        made = self.fetch(text, (run,))
        if row is None or not made:
            return None
        newer = self.fetch(replaced, (run,)) if row.round > 1 else []
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
        text = f"SELECT {self._of_event} FROM events WHERE seq IN ({queries.REPLAYED_EVENTS}) ORDER BY seq"
        for row in self.fetch(text.format(ranges=self.ranges_index), (run,)):
            event = self._decoder.event(row).event
            if isinstance(event, JobsEnded):
                within = f"SELECT id FROM jobs WHERE {queries.REPLAYED_JOBS} AND id BETWEEN ?2 AND ?3"
                for (job,) in self.fetch(within, (run, event.first, event.last)):
                    yield event.move_of(job)
            else:
                yield event

    def settled_jobs(self, run: int) -> list[tuple[int, State, int]]:
        """Number, state and number of attempts of the run's settled jobs."""
        text = f"SELECT id, state, attempt FROM jobs WHERE run = ? AND state NOT IN {UNSETTLED_SQL}"
        rows = self.fetch(text, (run,))
        states = {word: self._decoder.state(word, f"a job of run {run}") for word in {row[1] for row in rows}}
        return [(job, states[word], attempts) for job, word, attempts in rows]

    def _of_kind(self, run: int, kind: str) -> list[Event]:
        return [stored.event for stored in self._stored_of_kind(run, kind)]

    def _stored_of_kind(self, run: int, kind: str) -> list[StoredEvent]:
        # The index's own condition, as a literal: SQLite takes a partial index for nothing else.
        indexed = _ASKED if kind in ("PersonAsked", "FlowReplaced") else "1"
        return self._events(f"WHERE run = ? AND {indexed} AND kind = ? ORDER BY seq", (run, kind))

    def verdicts(self, after: int, limit: int) -> list[StoredEvent]:
        """Events numbered above `after` by which a job may have begun or got a verdict, or a run may have moved."""
        text = (
            "WHERE seq > ? AND (kind IN ('RunMoved', 'JobsEnded') OR (kind IN ('Observed', 'JobMoved') "
            "AND (instr(data, '\"verdict\"') OR instr(data, '\"usage\"')))) ORDER BY seq LIMIT ?"
        )
        return list(islice(each_move(self._events(text, (after, limit)), after), limit))

    def changes(self, after: int, limit: int) -> list[StoredEvent]:
        """Events numbered above `after` that change what users see of jobs and runs, in order."""
        kinds = "'RunSubmitted', 'JobsGenerated', 'Observed', 'JobMoved', 'JobsEnded', 'PersonAsked', 'RunMoved'"
        found = self._events(f"WHERE seq > ? AND kind IN ({kinds}) ORDER BY seq LIMIT ?", (after, limit))
        return list(islice(each_move(found, after), limit))

    def moves(self, run: int, job: int | None) -> list[StoredEvent]:
        """Events that moved a run as a whole, or one job of it, newest first."""
        if job is None:
            return self._events("WHERE run = ? AND kind = 'RunMoved' ORDER BY seq DESC", (run,))
        found = self._events("WHERE job = ? AND kind IN ('Observed', 'JobMoved')", (job,))
        return sorted([*found, *self._ended_in_range(run, job)], key=lambda stored: -stored.seq)

    def _ended_in_range(self, run: int, job: int) -> list[StoredEvent]:
        """What moved the job of this run together with others, as moves of its own."""
        text = f"{self.ranges_index} WHERE run = ? AND kind = 'JobsEnded' ORDER BY seq"
        found = self._events(text, (run,)) if self.ranges_index else []
        return [move for stored in found if (move := move_of(stored, job)) is not None]

    def notify_facts(self, run: int) -> tuple[tuple[NotifyRule, ...], Origin] | None:
        """Whom the run's flow wants to be told, and where the run comes from; without reading its jobs."""
        text = (
            "SELECT json_extract(data, '$.submission.flow.notify'), json_extract(data, '$.submission.origin'), "
            "json_extract(data, '$.flow.notify'), kind FROM events WHERE run = ? "
            "AND kind IN ('RunSubmitted', 'FlowReplaced') ORDER BY seq"
        )
        rows = self.fetch(text, (run,))
        if not rows:
            return None
        rules = rows[-1][0] if rows[-1][3] == "RunSubmitted" else rows[-1][2]
        try:
            known = loads(tuple[NotifyRule, ...], rules or "[]")
            return known, loads(Origin, rows[0][1])
        except (ValueError, TypeError) as error:
            raise AverError(f"{show_path(self.path)}: the submission of run {run} can't be read: {error}") from None

    def pools(self) -> list[PoolSized]:
        """What was set of pools, in order."""
        return [event for event in self._of_kind(0, "PoolSized") if isinstance(event, PoolSized)]

    def pruned(self) -> dict[int, float]:
        """When the logs of runs were last cut, by run."""
        text = (
            "SELECT run, max(at) FROM events WHERE kind IN ('PersonAsked', 'FlowReplaced') AND kind = 'PersonAsked' "
            "AND json_extract(data, '$.what') = 'prune' GROUP BY run"
        )
        return dict(self.fetch(text))

    def version_of_data(self) -> int:
        """Another number than before, if anybody has committed since."""
        return int(self.fetch("PRAGMA data_version")[0][0])

    def last_seq_of(self, run: int) -> int:
        return int(self.fetch("SELECT coalesce(max(seq), 0) FROM events WHERE run = ?", (run,))[0][0])

    def last_seq_of_job(self, job: int) -> int:
        own = int(self.fetch("SELECT coalesce(max(seq), 0) FROM events WHERE job = ?", (job,))[0][0])
        row = self.job(job)
        return max([own, *(one.seq for one in (self._ended_in_range(row.run, job) if row is not None else ()))])

    def standings_of_jobs(self, ids: Iterable[int]) -> dict[int, tuple[str, int, str]]:
        """State, attempt and reason of the jobs that there are, by number."""
        return self._standings("SELECT id, state, attempt, reason FROM jobs", ids)

    def standings_of_runs(self, ids: Iterable[int]) -> dict[int, tuple[str, int, str]]:
        """State and round of the runs that there are, by number; a run has no reason of its own."""
        return self._standings("SELECT id, state, round, '' FROM runs", ids)

    def _standings(self, text: str, ids: Iterable[int]) -> dict[int, tuple[str, int, str]]:
        rows = self.fetch(f"{text} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
        return {number: (state, turn, reason) for number, state, turn, reason in rows}

    def concerned(self, after: int, limit: int) -> list[tuple[int, int, int | None]]:
        """Number, run and job of the events numbered above `after`, in order; what they say is not read."""
        ends = (f"iif(kind = 'JobsEnded', json_extract(data, '$.{end}'), job)" for end in ("first", "last"))
        text = f"SELECT seq, run, {', '.join(ends)} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        found: list[tuple[int, int, int | None]] = []
        for seq, run, first, last in self.fetch(text, (after, limit)):
            jobs = [None] if first is None else range(first, last + 1)
            found += [(seq - len(jobs) + place, run, job) for place, job in enumerate(jobs, 1)]
        return [one for one in found if one[0] > after][:limit]

    def runs_by_id(self, ids: Iterable[int]) -> dict[int, RunRow]:
        """The runs that there are, by number."""
        text = "FROM runs WHERE id IN (SELECT value FROM json_each(?))"
        return {row.id: row for row in self._table(RunRow, text, (json.dumps(list(ids)),))}

    def events(
        self, run: int | None = None, job: int | None = None, after: int = 0, limit: int | None = None
    ) -> Iterator[StoredEvent]:
        """In order, those numbered above `after`; read page by page. Jobs that ended together have a JobMoved each."""
        found = each_move(self._pages(run, job, after, limit), after)
        if job is not None:
            row = self.job(job)
            owner = run if run is not None or row is None else row.run
            ranges = [] if owner is None else self._ended_in_range(owner, job)
            found = merge(found, [one for one in ranges if one.seq > after], key=lambda stored: stored.seq)
        return islice(found, limit)

    def _pages(self, run: int | None, job: int | None, after: int, limit: int | None) -> Iterator[StoredEvent]:
        chosen = "".join([" AND run = ?" if run is not None else "", " AND job = ?" if job is not None else ""])
        parameters = tuple(value for value in (run, job) if value is not None)
        text = f"SELECT {self._of_event} FROM events WHERE seq > ?{chosen} ORDER BY seq LIMIT ?"
        page = EVENTS_PER_PAGE if limit is None else min(limit, EVENTS_PER_PAGE)
        while True:
            rows = self.fetch(text, (after, *parameters, page))
            for row in rows:
                yield self._decoder.event(row)
            if len(rows) < page or not rows:
                return
            after = rows[-1][0]

    def _flow_events(self, run: int, kind: str) -> list[StoredEvent]:
        text = (
            "INDEXED BY events_flow "
            "WHERE run = ? AND kind IN ('RunSubmitted', 'JobsGenerated') AND kind = ? ORDER BY seq"
        )
        return self._events(text, (run, kind))

    def _table(self, made: type[Made], text: str, parameters: Sequence[Any] = ()) -> list[Made]:
        """Rows of a table; `text` is the query from FROM on."""
        return self._decoder.rows(made, self.fetch(f"SELECT {select(made.columns)} {text}", parameters))

    def _one(self, made: type[Made], text: str, parameters: Sequence[Any]) -> Made | None:
        rows = self._table(made, text, parameters)
        return rows[0] if rows else None

    def _events(self, text: str, parameters: Sequence[Any]) -> list[StoredEvent]:
        """Stored events; `text` is what follows FROM events."""
        rows = self.fetch(f"SELECT {self._of_event} FROM events {text}", parameters)
        return [self._decoder.event(row) for row in rows]


def _memory_limit(row: AttemptRow) -> int | None:
    return row.request.mem_bytes


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _in_states(column: str, states: Iterable[State] | None) -> tuple[str, tuple[Any, ...]]:
    if states is None:
        return "1", ()
    words = tuple(state.value for state in states)
    return f"{column} IN ({', '.join('?' * len(words))})", words
