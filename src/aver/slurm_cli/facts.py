"""The store as Slurm's commands read it: jobs, their flows, what people asked for, and the secrets not to be shown.

Reads only. What is shown of a job is in `job_facts`, whose names are here as well.
"""

from __future__ import annotations

import os
import time

from aver.errors import AverError
from aver.fast_start import TYPE_CHECKING
from aver.ownership import check_home
from aver.printable import printable
from aver.protocol import fast_client
from aver.protocol.place import home_folder
from aver.slurm_cli import texts
from aver.slurm_cli.job_facts import JobFacts as JobFacts
from aver.slurm_cli.job_facts import node_name as node_name
from aver.slurm_cli.output import say
from aver.store.columns import LightJob, LightStep
from aver.store.losses import loss_words, read_count
from aver.store.read.light import LightReader

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from aver.render.masking import Masking

MIN_JOB_AGE_S = 300.0  # how long squeue lists what has ended

_said = ""  # by this command, of what the store has lost


class Book:
    """The store of one home, for one command."""

    def __init__(self, home: str, reader: LightReader | None, now: float) -> None:
        self.home = home
        self.reader = reader
        self.now = now
        self.converts = True  # whether 2048M may be shown as 2G
        self.expands = False  # whether sacct shows the files of a job, not the patterns of their names
        self._origins: dict[int, dict[str, Any]] = {}
        self._flows: dict[tuple[int, int], dict[str, Any]] = {}
        self._masking: Masking | None = None
        self._asked: dict[int, list[tuple[float, int | None, dict[str, Any]]]] = {}
        self._active: dict[int, int] = {}
        self._updated_alone: dict[int, set[int | None]] = {}

    @classmethod
    def open(cls) -> Book:
        """Open what there is; UsageError if the home is not ours alone."""
        home = home_folder()
        check_home(home)
        database = os.path.join(home, "aver.db")
        committed = read_count(database)
        book = cls(home, LightReader.open(database), time.time())
        book._say_losses(committed)
        return book

    def _say_losses(self, committed: int) -> None:
        """Who waits for a job by asking whether it is listed must not take its absence for its end."""
        global _said
        said = loss_words(self.home, committed, 0 if self.reader is None else self.reader.last_seq())
        if said is not None and said != _said:
            _said = said
            say(f"aver: warning: {said}")

    def refresh(self) -> bool:
        """See to it that somebody looks after unsettled jobs. True when one had to be started: read again then."""
        try:
            fast_client.open_wire(self.home).close()
            return False
        except OSError:
            pass
        try:
            fast_client.connect(self.home).close()
        except (fast_client.Lost, AverError, OSError):
            return False
        return True

    def unsettled(self) -> list[JobFacts]:
        return [] if self.reader is None else self.facts(self.reader.unsettled())

    def recent(self) -> list[JobFacts]:
        """The unsettled, and what ended not long ago."""
        return [] if self.reader is None else self.facts(self.reader.since(self.now - MIN_JOB_AGE_S))

    def between(self, start: float, end: float) -> list[JobFacts]:
        return [] if self.reader is None else self.facts(self.reader.between(start, end))

    def numbered(self, numbers: Iterable[int]) -> list[JobFacts]:
        """Jobs by their numbers, and all jobs of runs by theirs."""
        return [] if self.reader is None else self.facts(self.reader.numbered(numbers))

    def attempts(self, jobs: Iterable[int]) -> list[JobFacts]:
        return [] if self.reader is None else self.facts(self.reader.attempts(jobs))

    def steps(self, jobs: Iterable[JobFacts]) -> dict[tuple[int, int], list[LightStep]]:
        """The steps of each job and attempt."""
        found: dict[tuple[int, int], list[LightStep]] = {}
        if self.reader is not None:
            for step in self.reader.steps({job.row.id for job in jobs}):
                found.setdefault((step.job, step.attempt), []).append(step)
        return found

    def read_steps(self, jobs: list[JobFacts]) -> None:
        """Give each job the steps of its attempt."""
        found = self.steps(jobs)
        for job in jobs:
            job.steps = found.get((job.row.id, job.row.attempt or 0), [])

    def facts(self, rows: list[LightJob]) -> list[JobFacts]:
        self._load({row.run for row in rows})
        return [
            JobFacts(self, row, self._origins.get(row.run, {}), self._flows.get((row.run, row.first_job), {}))
            for row in rows
        ]

    def _load(self, runs: set[int]) -> None:
        assert self.reader is not None
        fresh = runs - self._origins.keys()
        if not fresh:
            return
        first: dict[int, int] = {}
        for run, kind, data in self.reader.flows(fresh):
            event = fast_client.loads(data.encode())
            flow = event.get("flow", {}) if kind == "JobsGenerated" else event["submission"]["flow"]
            if kind == "RunSubmitted":
                self._origins[run] = event["submission"]["origin"]
                if secrets := self._origins[run].get("secrets"):
                    self._hide(run, secrets)
                first[run] = event["first_job"]
            self._flows[(run, event["first_job"])] = flow
        for at, run, job, kind, data in self.reader.asked(fresh):
            event = fast_client.loads(data.encode())
            if kind == "PersonAsked":
                self._asked.setdefault(run, []).append((at, job, event))
            elif run in first:
                self._flows[(run, first[run])] = event["flow"]

    def _hide(self, run: int, names: list[str]) -> None:
        """Mask the values of a run's secrets in all that is shown."""
        from aver.store.secrets import load_masking  # costs as much as the rest, and few runs have secrets

        masking = load_masking(self.home, run, names)
        self._masking = masking if self._masking is None else self._masking | masking

    def masked(self, text: str) -> str:
        return text if self._masking is None else self._masking.whole(text)

    def shown(self, text: str) -> str:
        """The text in one line and without the values of secrets."""
        return printable(self.masked(text))

    def asked(self, run: int, job: int) -> list[tuple[float, dict[str, Any]]]:
        """What people asked for of a job, or of the whole run, in order."""
        return [(at, event) for at, about, event in self._asked.get(run, ()) if about in (None, job)]

    def is_cancelled_alone(self, row: LightJob) -> bool:
        """Whether it was cancelled by its own number before the whole run was."""
        asked = self._asked.get(row.run, ())
        cancelled = (about for _, about, event in asked if about in (None, row.id) and event.get("what") == "cancel")
        return next(cancelled, None) == row.id

    def is_updated_alone(self, row: LightJob) -> bool:
        """Whether `scontrol update` changed it without other jobs of its run: Slurm splits it off its array then."""
        run = row.run
        if run not in self._updated_alone:
            updated: dict[float, list[int | None]] = {}
            for at, about, event in self._asked.get(run, ()):
                if event.get("what") == "update":
                    updated.setdefault(at, []).append(about)
            self._updated_alone[run] = {jobs[0] for jobs in updated.values() if len(jobs) == 1}
        return row.id in self._updated_alone[run]

    def active_in(self, run: int) -> int:
        """How many jobs of a run have started and are not settled."""
        if run not in self._active:
            self._active[run] = 0 if self.reader is None else self.reader.active_in(run)
        return self._active[run]

    def said(self, job: int, attempt: int) -> list[tuple[float, dict[str, Any]]]:
        """What sources said of an attempt, in order."""
        if self.reader is None:
            return []
        found = []
        for at, data, words in self.reader.observed(job, attempt):
            document = fast_client.loads(data.encode())
            found.append((at, document if words is None else {**document, "said": words}))
        return found


def say_warnings(command: str, jobs: list[JobFacts]) -> None:
    """What the verdicts warn of, on stderr: a table has no room for it, and must not hide it."""
    failed = [job for job in jobs if job.derived != 0 and job.has_run and job.steps is None]
    if failed:
        failed[0].book.read_steps(failed)
    for job in jobs:
        if warnings := job.system_comment:
            say(f"{command}: warning: job {job.id_text}: {warnings}")


def remembered(book: Book, jobs: Iterable[JobFacts]) -> list[JobFacts]:
    """The jobs that squeue and scontrol show.

    As in Slurm, they forget a task of an array that was cancelled by itself before it began; tasks that never began
    and ended with their array are shown under its number. Accounting has them all.
    """
    kept = []
    for job in jobs:
        never_began = job.array_job is not None and job.ours in _NEVER_BEGAN and job.row.started_at is None
        if never_began and not book.is_updated_alone(job.row):
            if book.is_cancelled_alone(job.row):
                continue
            job.stands_for_array = True
        kept.append(job)
    return kept


_NEVER_BEGAN = ("CANCELLED", "SKIPPED", "DEADLINE")  # states of jobs that may never have begun


def gathered(jobs: Iterable[JobFacts]) -> list[JobFacts]:
    """The jobs, with those tasks of an array that wait to begin, or never began, as one, in the place of the first."""
    kept: list[JobFacts] = []
    together: dict[tuple[object, ...], tuple[JobFacts, list[int]]] = {}
    for job in jobs:
        if job.array_job is None or not (job.waits_with_array or job.stands_for_array):
            kept.append(job)
            continue
        key = (job.array_job, job.is_held, "" if job.is_pending else (job.ours, job.row.reason))
        if key not in together:
            together[key] = (job, [])
            kept.append(job)
        together[key][1].append(int(job.array_index))
    for first, indices in together.values():
        if len(indices) == 1:
            continue  # the last one is a task like any other
        limit = f"%{first.array_limit}" if first.array_limit else ""
        first.rest = texts.index_list(indices) + limit
    return kept
