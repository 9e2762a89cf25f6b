"""Where the jobs of one run write, for commands that look at many of them.

The flow is read once, and the members of a matrix are worked out once: `facts.files_of` is for one job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aver.cli.session import Session
from aver.coordinator.places import Which, job_files
from aver.core.expand import Member, members
from aver.core.model import FlowSpec
from aver.store.outcomes import Outcome


class RunLogs:
    """The files of a run's jobs, by job and attempt."""

    def __init__(self, session: Session, run: int, rows: Iterable[Outcome]) -> None:
        self._session = session
        self._run = run
        self._rows = {row.job: row for row in rows}
        self._flows: dict[int, FlowSpec] | None = None
        self._members: dict[tuple[int, int], Sequence[Member]] = {}

    @property
    def flows(self) -> dict[int, FlowSpec]:
        """The flow that was submitted and those that were generated, by the first job that each made."""
        if self._flows is None:
            reader = self._session.found_reader(str(self._run))
            first = self._session.run_row(self._run).first_job
            generated = {batch.first_job: batch.flow for batch in reader.generated(self._run)}
            self._flows = {first: self._session.submission(self._run).flow, **generated}
        return self._flows

    def paths(self, job: int, attempt: int) -> tuple[str, ...]:
        """The files that an attempt wrote to: stderr first where it has a file of its own, since causes stand there."""
        row = self._rows[job]
        submission = self._session.submission(self._run)
        spec = self.flows[row.first_job].jobs[row.spec]
        key = (row.first_job, row.spec)
        if key not in self._members:
            self._members[key] = members(spec)
        values = self._members[key][row.member].values
        which = Which(run=self._run, job=job, name=row.name, attempt=attempt, values=values)
        files = job_files(submission, spec, which, submission.flow.is_single)
        return (files.stdout,) if files.stderr is None else (files.stderr, files.stdout)
