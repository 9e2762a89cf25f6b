"""Where the jobs of one run write, for commands that look at many of them.

The flow is read once, and the members of a matrix are worked out once: `facts.files_of` is for one job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aver.cli.session import Session
from aver.client.output_paths import Which, job_files
from aver.errors import AverError, InternalError
from aver.model.job import FlowSpec, JobSpec
from aver.plan.matrix import Member, members
from aver.store.columns import Outcome


class RunLogs:
    """The files of a run's jobs, by job and attempt."""

    def __init__(self, session: Session, run: int, rows: Iterable[Outcome]) -> None:
        self._session = session
        self._run = run
        self._rows = {row.job: row for row in rows}
        found = session.found_reader(str(run)).sketch(run)
        if found is None:
            raise InternalError(f"run {run} has no submission in the store")
        self._sketch = found
        self._first_job = session.run_row(run).first_job
        self._generated: dict[int, FlowSpec] | None = None
        self._members: dict[tuple[int, int], Sequence[Member]] = {}

    def paths(self, job: int, attempt: int) -> tuple[str, ...]:
        """The files that an attempt wrote to: stderr first where it has a file of its own, since causes stand there."""
        row = self._rows[job]
        submission = self._sketch.head()
        spec = self._spec(row)
        key = (row.first_job, row.spec)
        if key not in self._members:
            self._members[key] = members(spec)
        values = self._members[key][row.member].values + spec.params
        member = None if spec.matrix is None else row.member
        which = Which(run=self._run, job=job, name=row.name, attempt=attempt, values=values, member=member)
        files = job_files(submission, spec, which, submission.flow.is_single)
        return (files.stdout,) if files.stderr is None else (files.stderr, files.stdout)

    def _spec(self, row: Outcome) -> JobSpec:
        if row.first_job == self._first_job:
            try:
                return self._sketch.spec(row.spec)
            except ValueError as error:
                raise AverError(f"the flow of run {self._run} can't be read: {error}") from None
        if self._generated is None:
            found = self._session.found_reader(str(self._run)).generated(self._run)
            self._generated = {batch.first_job: batch.flow for batch in found}
        return self._generated[row.first_job].jobs[row.spec]
