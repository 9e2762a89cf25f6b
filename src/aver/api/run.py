"""One execution of a flow: wait for it, continue it, read its jobs and results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from aver.api.access import Stored
from aver.api.function_call import reference_of
from aver.api.job import Job, jobs_table
from aver.api.notebook import Shown, Table, progress
from aver.api.outcome import ended
from aver.client.changes import Rerun
from aver.client.origin import user_name
from aver.client.reinit import compare, flow_now
from aver.errors import UsageError
from aver.home import Home
from aver.model.job import FlowSpec
from aver.model.states import State
from aver.plan.address import glob_pattern, parse_address
from aver.plan.selection import without
from aver.protocol.messages import Cancel, Continued, Results, Retried, Retry
from aver.report.results import Result, lines_of, result_of
from aver.report.usage import RunUse, run_use
from aver.store.read.rows import RunRow
from aver.store.read.step_warnings import step_warnings_of_run


class Definition(Protocol):
    """A flow that can be checked, such as a `Flow`."""

    def check(self) -> FlowSpec: ...


class Run(Stored, Shown):
    """One execution of a flow; `Run(3)` is the one with that number, whoever submitted it."""

    def __init__(self, number: int, home: Home | None = None) -> None:
        super().__init__(home)
        self.number = number

    @property
    def state(self) -> State:
        return self._row().state

    @property
    def round(self) -> int:
        """1, and one more for each time that it was continued."""
        return self._row().round

    @property
    def jobs(self) -> list[Job]:
        """All of its jobs, generated ones included, by number."""
        with self._reader() as reader:
            return [Job(row.id, self._home) for row in reader.jobs(self.number)]

    def __getitem__(self, name: str) -> Job:
        """The job of that name or address, such as `train[seed=2]`; KeyError if there is none, or more than one."""
        with self._reader() as reader:
            rows = reader.find(name, self.number) or [row for row in reader.jobs(self.number) if _fits(name, row.name)]
        if len(rows) != 1:
            what = f"{len(rows)} jobs" if rows else "no job"
            raise KeyError(f"run {self.number} has {what} called {name!r}")
        return Job(rows[0].id, self._home)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return self._row().jobs

    def result(self, name: str, timeout: float | None = None) -> Any:
        """Wait for the job, and return what its function returned; raise what it raised, or a JobError.

        UsageError if the job calls no function.
        """
        job = self[name]
        job.wait(timeout)
        with self._reader() as reader:
            row = reader.job(job.number)
            submission = reader.submission(self.number)
        assert row is not None
        assert submission is not None
        reference = reference_of(submission.flow.jobs[row.spec])
        if reference is None:
            raise UsageError(f"job {name} of run {self.number} calls no function")
        came = ended(self._home, row, reference)
        if came.error is not None:
            raise came.error
        return came.value

    async def wait_async(self, timeout: float | None = None) -> State:
        """As `wait`, without blocking the loop. Cancelling it stops waiting, and cancels nothing."""
        await self._wait_async(self.number, timeout)
        state = self.state
        return state if state.is_settled else await self.wait_async(timeout)

    def wait(self, timeout: float | None = None) -> State:
        """Wait until all of it is settled, background jobs too, and return its state; TimeoutError cancels nothing."""
        self._wait(self.number, timeout)
        state = self.state
        return state if state.is_settled else self.wait(timeout)  # somebody ran it again meanwhile

    def cancel(self, *, now: bool = False) -> None:
        """End what runs, and start nothing more but finishers (`if: always`); with `now` not even those."""
        self._ask(Cancel((self.number,), user_name(), now=now), Results)

    def retry(self, *names: str) -> None:
        """Run failed, lost and skipped jobs again, or those named; finished work is not repeated."""
        self._ask(Retry(tuple(self[name].number for name in names) or (self.number,), user_name()), Retried)

    def reinit(
        self,
        flow: Definition | None = None,
        *,
        inherit: Sequence[str] = (),
        params: Mapping[str, object] | None = None,
        dry_run: bool = False,
    ) -> tuple[Rerun, ...]:
        """Run jobs again whose inputs, command or environment changed or whose outputs are missing, and all below.

        Returns each with its cause; with `dry_run` nothing is run. `flow` is how it is now; without it the file that
        the run came from is read again, if it came from one. `inherit` names variables to take from our environment;
        `params` sets params of the file's flow, and all others keep the run's values.
        """
        with self._reader() as reader:
            submission = reader.submission(self.number)
            if submission is None:
                raise UsageError(f"run {self.number} does not exist")
            given = {name: str(value) for name, value in (params or {}).items()}
            if flow is None:
                now = flow_now(submission, params=given)
            else:
                now = without(flow.check(), submission.flow.unselected)
            if given and (flow is not None or now is None):
                raise UsageError(f"run {self.number}: params are set in the flow's file, and none is read")
            reinit = compare(self._home, reader, self.number, now, inherit, os.environ)
        if reinit.changes.causes and not dry_run:
            self._ask(reinit.request(user_name()), Continued)
        return reinit.changes.causes

    def results(self) -> list[Result]:
        """How each attempt of each job ended and what it used, failed jobs first; None is not known."""
        self._row()
        with self._reader() as reader:
            warned = step_warnings_of_run(reader, self.number)
            return [result_of(line, warned) for line in lines_of(reader.outcomes(self.number))]

    def usage(self) -> RunUse:
        """What was asked for and used, by group and by job, of the newest attempt of each job that has ended."""
        self._row()
        with self._reader() as reader:
            return run_use(reader.outcomes(self.number), reader.request)

    def _row(self) -> RunRow:
        with self._reader() as reader:
            row = reader.run(self.number)
        if row is None:
            raise UsageError(f"run {self.number} does not exist")
        return row

    def __repr__(self) -> str:
        return f"<run {self.number}>"

    def _table(self) -> Table:
        """Failed jobs first, then those that go on."""
        row = self._row()
        with self._reader() as reader:
            counts = reader.counts(self.number)
            jobs = sorted(reader.jobs(self.number), key=lambda job: (job.state is State.COMPLETED, job.id))
        settled = sum(count for state, count in counts.items() if state.is_settled)
        bar = progress({str(state): count for state, count in counts.items()}, settled)
        shown = jobs_table(f"run {row.id} ({row.name}) {row.state}", bar, jobs)
        return Table(repr(self), shown, row.state.is_settled)


def _fits(address: str, name: str) -> bool:
    wanted, found = parse_address(address), parse_address(name)
    values = dict(found.values)
    return glob_pattern(wanted.name).fullmatch(found.name) is not None and all(
        values.get(axis) == value for axis, value in wanted.values
    )
