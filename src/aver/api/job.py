"""One job of a run: its verdict, its attempts, its output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aver.api.access import Stored
from aver.api.attempt import Attempt, attempt_of
from aver.api.notebook import SHOWN, Shown, Table, table
from aver.client.documents import known_reason
from aver.client.job_files import JobFiles, Which, job_files
from aver.client.origin import user_name
from aver.errors import UsageError
from aver.home import Home
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import JobSpec
from aver.model.reasons import parse_from_run
from aver.model.states import State
from aver.plan.matrix import values_of
from aver.protocol.messages import Accept, Cancel, Results
from aver.render.masking import Masking
from aver.store.read.rows import JobRow
from aver.store.secrets import load_masking


class Job(Stored, Shown):
    """One job of a run. Each property is read when it is asked for."""

    def __init__(self, number: int, home: Home | None = None) -> None:
        super().__init__(home)
        self.number = number

    @property
    def name(self) -> str:
        return self._row().name

    @property
    def state(self) -> State:
        return self._row().state

    @property
    def verdict(self) -> Verdict | None:
        """How it ended and who says so; None until it is settled."""
        return self._row().verdict

    @property
    def exit(self) -> ExitStatus | None:
        """None is unknown, or not ended yet; never 0."""
        return self._row().exit

    @property
    def reason(self) -> str | None:
        """Slurm's word for why it waits or did not complete; None where there is none, as of a success."""
        return known_reason(self._row().reason)

    @property
    def from_run(self) -> int | None:
        """The run that did its work, of a job that was taken over; None for any other."""
        origin = parse_from_run(self._row().reason)
        return None if origin is None else origin.run

    @property
    def attempts(self) -> list[Attempt]:
        """All of its attempts, each with its own verdict."""
        with self._reader() as reader:
            return list(map(attempt_of, reader.attempts(self.number)))

    def log(self, attempt: int | None = None) -> str:
        """What an attempt (the newest) wrote to its output so far, with secrets masked; empty if it never began.

        All attempts write to one file if the flow names it.
        """
        path, masking = self._log(attempt)
        try:
            return masking.whole(Path(path).read_bytes()).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise UsageError(f"can't read {path}: {error.strerror}") from None

    def wait(self, timeout: float | None = None) -> Verdict:
        """Wait until it is settled and return its verdict; TimeoutError cancels nothing."""
        self._wait(self.number, timeout)
        verdict = self.verdict
        return verdict if verdict is not None else self.wait(timeout)

    async def wait_async(self, timeout: float | None = None) -> Verdict:
        """As `wait`, without blocking the loop. Cancelling it stops waiting, and cancels nothing."""
        await self._wait_async(self.number, timeout)
        verdict = self.verdict
        return verdict if verdict is not None else await self.wait_async(timeout)

    def cancel(self) -> None:
        """A running job gets TERM and, after its kill wait, KILL; a pending one never starts."""
        self._ask(Cancel((self.number,), user_name()), Results)

    def accept(self) -> None:
        """Vouch for an UNVERIFIED job: its end was not seen, and it succeeded. Who vouches is stored."""
        self._ask(Accept((self.number,), user_name()), Results)

    def _row(self) -> JobRow:
        with self._reader() as reader:
            row = reader.job(self.number)
        if row is None:
            raise UsageError(f"job {self.number} does not exist")
        return row

    def _log(self, attempt: int | None = None) -> tuple[str, Masking]:
        """Where an attempt wrote, and what hides its secrets."""
        with self._reader() as reader:
            run = self._row().run
            origin = reader.origin(run)
        secrets = () if origin is None else origin.secrets
        return self._files(attempt).stdout, load_masking(os.fspath(self._home.path), run, secrets)

    def _files(self, attempt: int | None) -> JobFiles:
        with self._reader() as reader:
            row = self._row()
            submission = reader.submission(row.run)
            assert submission is not None
            batches = {batch.first_job: batch.flow for batch in reader.generated(row.run)}
        spec: JobSpec = batches.get(row.first_job, submission.flow).jobs[row.spec]
        values = values_of(spec, row.member)
        member = None if spec.matrix is None else row.member
        which = Which(row.run, row.id, row.name, attempt or max(1, row.attempt), values, member)
        return job_files(submission, spec, which, submission.flow.is_single)

    def __repr__(self) -> str:
        return f"<job {self.number}>"

    def _table(self) -> Table:
        row = self._row()
        return Table(repr(self), jobs_table(f"job {row.id} of run {row.run}", "", [row]), row.state.is_settled)


def jobs_table(title: str, bar: str, rows: Sequence[JobRow]) -> str:
    """The first jobs as a table, with how many are left out."""
    lines = [(row.id, row.name, row.state, known_reason(row.reason) or "") for row in rows[:SHOWN]]
    return table(title, bar, ("job", "name", "state", "reason"), lines, len(rows) - SHOWN)
