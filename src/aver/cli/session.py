"""What every command needs: the home, the store to read, the coordinator to ask, the output to write to.

Reading works without a coordinator. If runs are unsettled and none answers, one is started first, so
that what is read is fresh; if that fails, the command says so and answers all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from aver.cli.address import Named, Number, parse_address, runs_back
from aver.cli.output.text import Output
from aver.client.origin import user_name
from aver.errors import AverError, InternalError, UsageError
from aver.home import Home
from aver.model.job import FlowSpec, JobSpec, Submission
from aver.protocol.client import Client
from aver.render.masking import Masking

if TYPE_CHECKING:
    from aver.model.record import Record
    from aver.plan.matrix import Member, Values
    from aver.protocol.messages import Request
    from aver.store.read.reader import Reader
    from aver.store.read.rows import JobRow, RunRow

Reply = TypeVar("Reply", bound="Record")

__all__ = ["Session", "not_found", "user_name"]


class Session:
    """One command's view of one home. The store is opened when it is first asked for."""

    def __init__(self, home: Home | None = None, output: Output | None = None) -> None:
        self.home = home or Home.find()
        self.output = output or Output.standard()
        self._reader: Reader | None = None
        self._loss = ""  # said already
        self._submissions: dict[int, Submission] = {}
        self._members: tuple[JobSpec, Sequence[Member]] | None = None  # of the spec that was asked for last

    def connect(self) -> Client:
        """A connection to the coordinator, which is started if none is there."""
        return Client.connect(self.home)

    def ask(self, request: Request, kind: type[Reply]) -> Reply:
        """Ask the coordinator one thing; the reply is of this type."""
        client = self.connect()
        try:
            return client.ask(request, kind)
        finally:
            client.close()

    @property
    def reader(self) -> Reader | None:
        """The store; None before the first submission."""
        if self._reader is None:
            from aver.store.losses import read_count  # `aver submit` reads nothing
            from aver.store.read.reader import Reader

            self.home.check()
            committed = read_count(os.fspath(self.home.database))
            self._reader = Reader.open(self.home.database)
            self._say_losses(committed)
        return self._reader

    def _say_losses(self, committed: int) -> None:
        """What is missing can't be seen from what is there."""
        from aver.store.losses import loss_words

        last_seq = 0 if self._reader is None else self._reader.last_seq()
        said = loss_words(os.fspath(self.home.path), committed, last_seq)
        if said is not None and said != self._loss:
            self._loss = said
            self.output.note(said)

    def close(self) -> None:
        """Close the store; who asks again opens it again."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def refresh(self) -> None:
        """See to it that somebody looks after unsettled runs; fails only if the store can't be read."""
        is_unsettled = self.reader is not None and bool(self.reader.unsettled_runs())
        if not is_unsettled and not self.home.has_schedules():
            return
        try:
            self.connect().close()
        except AverError as error:
            self.output.note(f"{error}; shown as of the last time a coordinator ran")

    def nothing_words(self) -> str:
        """Why there is no store."""
        return "the store is gone" if self._loss else "nothing was submitted yet"

    def found_reader(self, wanted: str) -> Reader:
        """The store, for a command that names something in it."""
        if self.reader is None:
            raise UsageError(f"no job or run {wanted}: {self.nothing_words()} in {self.home.path} (AVER_HOME)")
        return self.reader

    def run_row(self, run: int) -> RunRow:
        row = self.found_reader(str(run)).run(run)
        if row is None:
            raise not_found(str(run))
        return row

    def find(self, text: str) -> RunRow | list[JobRow]:
        """Return the run of several jobs, or the jobs, that an address names; raise UsageError if there are none."""
        reader = self.found_reader(text)
        address = parse_address(self.numbered(text))
        if isinstance(address, Number):
            run = reader.run(address.id)
            if run is not None and not run.is_single:
                return run
            job = reader.job(address.id)
            if job is None:
                raise not_found(text)
            return [job]
        if reader.run(address.run) is None:
            raise not_found(str(address.run))
        jobs = reader.find(address.pattern, address.run) or self._matching(reader, address)
        if not jobs:
            raise UsageError(
                f"no job of run {address.run} is called {address.pattern!r}; `aver jobs {address.run}` lists them"
            )
        return jobs

    def numbered(self, text: str) -> str:
        """The address with the number of the run that `last` means."""
        named = runs_back(text)
        if named is None:
            return text
        back, rest = named
        newest = self.found_reader(text).runs(limit=back + 1)
        if len(newest) <= back:
            raise UsageError(f"no job or run {text}: there are only {len(newest)} runs; `aver runs` lists them")
        return f"{newest[back].id}{rest}"

    def find_job(self, text: str) -> JobRow:
        """Return the one job that an address names."""
        found = self.find(text)
        if not isinstance(found, list):
            raise UsageError(
                f"{text} is a run of {found.jobs} jobs; name one of them: `aver jobs {found.id}` lists them"
            )
        if len(found) > 1:
            raise UsageError(f"{text} names {len(found)} jobs, {found[0].id} to {found[-1].id}; name one of them")
        return found[0]

    def ids(self, texts: Sequence[str]) -> list[int]:
        """The numbers of all that the addresses name, each once."""
        numbers: list[int] = []
        for text in texts:
            found = self.find(text)
            numbers += [job.id for job in found] if isinstance(found, list) else [found.id]
        return list(dict.fromkeys(numbers))

    def job_ids(self, texts: Sequence[str]) -> list[int]:
        """The numbers of all jobs that the addresses name; a run means all its jobs."""
        numbers: list[int] = []
        for text in texts:
            found = self.find(text)
            rows = found if isinstance(found, list) else self.found_reader(text).jobs(found.id)
            numbers += [job.id for job in rows]
        return list(dict.fromkeys(numbers))

    def submission(self, run: int) -> Submission:
        if run not in self._submissions:
            found = self.found_reader(str(run)).submission(run)
            if found is None:
                raise InternalError(f"run {run} has no submission in the store")
            self._submissions[run] = found
        return self._submissions[run]

    def spec(self, job: JobRow) -> JobSpec:
        """What was asked for this job."""
        return self._flow(job).jobs[job.spec]

    def values(self, job: JobRow) -> Values:
        """What this job's texts are filled with: its own values, and params."""
        spec = self.spec(job)
        if self._members is None or self._members[0] is not spec:
            from aver.plan.matrix import members  # most commands fill nothing

            self._members = spec, members(spec)
        return self._members[1][job.member].values + spec.params

    def mask(self, runs: Iterable[int]) -> Masking:
        """Hide the secrets of these runs in all that is written from now on."""
        for run in dict.fromkeys(runs):
            self.hide(run, self._secrets(run))
        return self.output.masking

    def hide(self, run: int, names: Sequence[str]) -> None:
        """Hide the values of these names of a run; AverError if they can't be read."""
        if names:
            from aver.store.secrets import load_masking  # most runs have none

            self.output.masking |= load_masking(os.fspath(self.home.path), run, names)

    def _secrets(self, run: int) -> tuple[str, ...]:
        """The names of what is to be masked; the flow, which may be large, is not read for them."""
        if run in self._submissions:
            return self._submissions[run].origin.secrets
        origin = self.found_reader(str(run)).origin(run)
        return () if origin is None else origin.secrets

    def _flow(self, job: JobRow) -> FlowSpec:
        if job.first_job > job.run + 1:  # the jobs of the submission have the numbers after their run's
            for batch in self.found_reader(str(job.id)).generated(job.run):
                if batch.first_job == job.first_job:
                    return batch.flow
        return self.submission(job.run).flow

    def _matching(self, reader: Reader, address: Named) -> list[JobRow]:
        return [job for job in reader.jobs(address.run) if address.matches(job.name)]


def not_found(text: str) -> UsageError:
    return UsageError(f"no job or run {text}; `aver jobs` lists them")
