"""From a row as SQLite gives it to what it says: the columns that are asked for, and how each is read.

A word or value that this version does not know is an error that names the row; an exit that is no wait status is
unknown. The columns are in the order of the classes in `rows`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aver.errors import AverError
from aver.model.codec import loads
from aver.model.evidence import TaskCause
from aver.model.exit import ExitStatus
from aver.model.job import Request, StepSpec
from aver.model.states import State
from aver.store.encoding import decode_event
from aver.store.open import show_path
from aver.store.read.rows import AttemptRow, GroupRow, JobRow, RunRow, StepRow, StoredEvent, TaskRow

RUN = "id, name, state, round, submitted_at, ended_at, first_job, jobs, is_single, user, folder"
JOB = (
    "id, run, name, first_job, spec, member, state, reason, exit, verified, source, warnings, detail, attempt, "
    "submitted_at, started_at, ended_at, elapsed_s, background, derived"
)
# A process that ran used memory: a peak of 0 is one that the kernel had not counted yet, and so is not known.
ATTEMPT = (
    "a.job, a.attempt, a.key, a.engine, a.state, a.reason, a.exit, a.verified, a.source, a.warnings, a.detail, "
    "a.planned_at, a.started_at, a.ended_at, a.elapsed_s, a.user_s, a.sys_s, nullif(a.peak_bytes, 0), a.node, a.request"
)
STEP = (
    "job, attempt, step, name, token, tasks, spec, started_at, state, reason, exit, verified, source, warnings, "
    "detail, ended_at, derived, first_failed, srun_code"
)
TASK = (
    "job, attempt, step, task, state, reason, exit, verified, source, warnings, detail, because, ended_at, started_at, "
    "elapsed_s, user_s, sys_s, nullif(peak_bytes, 0), node, cause"
)
_STATES = {state.value: state for state in State}
_VERIFIED = {None: None, 0: False, 1: True}


class Decoder:
    """Of one database; the same exit or request is read once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exits: dict[int | None, ExitStatus | None] = {None: None}
        self._requests: dict[str, Request] = {}

    def state(self, word: object, what: str) -> State:
        state = _STATES.get(word) if isinstance(word, str) else None
        if state is None:
            raise AverError(
                f"{show_path(self._path)}: {what} has state {word!r}, which this version of Aver does not know"
            )
        return state

    def _exit(self, raw: Any) -> ExitStatus | None:
        """None for what is no wait status: not known, never guessed."""
        if raw in self._exits:
            return self._exits[raw]
        try:
            found = ExitStatus.from_wait(raw)
        except (ValueError, TypeError):
            return None
        self._exits[raw] = found
        return found

    def _warnings(self, text: str | None, what: str) -> tuple[str, ...]:
        if text is None:
            return ()
        try:
            return loads(tuple[str, ...], text)
        except ValueError as error:
            raise AverError(f"{show_path(self._path)}: the warnings of {what} can't be read: {error}") from None

    def run(self, row: Any) -> RunRow:
        run, name, state, round_, submitted_at, ended_at, first_job, jobs, is_single, user, folder = row
        known = self.state(state, f"run {run}")
        return RunRow(
            run, name, known, round_, submitted_at, ended_at, first_job, jobs, bool(is_single), user, folder
        )  # fmt: skip

    def job(self, row: Any) -> JobRow:
        (
            job, run, name, first_job, spec, member, state, reason, ended, verified, source, warnings, detail,
            attempt, submitted_at, started_at, ended_at, elapsed_s, background, derived,
        ) = row  # fmt: skip
        return JobRow(
            job, run, name, first_job, spec, member,
            _STATES.get(state) or self.state(state, f"job {job}"), reason,
            self._exit(ended), _VERIFIED.get(verified), source,
            () if warnings is None else self._warnings(warnings, f"job {job}"), detail or "",
            attempt, submitted_at, started_at, ended_at, elapsed_s, bool(background), derived,
        )  # fmt: skip

    def group(self, row: Any) -> GroupRow:
        first_job, spec, state, jobs, first, name, reason, ended, *times = row
        known = self.state(state, f"job {first}")
        return GroupRow(first_job, spec, known, jobs, first, name, reason, self._exit(ended), *times)

    def attempt(self, row: Any) -> AttemptRow:
        (
            job, attempt, key, engine, state, reason, ended, verified, source, warnings, detail,
            planned_at, started_at, ended_at, elapsed_s, user_s, sys_s, peak_bytes, node, request,
        ) = row  # fmt: skip
        what = f"attempt {attempt} of job {job}"
        return AttemptRow(
            job, attempt, key, engine, self.state(state, what), reason,
            self._exit(ended), _VERIFIED.get(verified), source, self._warnings(warnings, what), detail or "",
            planned_at, started_at, ended_at, elapsed_s, user_s, sys_s, peak_bytes, node, self.request(request, what),
        )  # fmt: skip

    def step(self, row: Any) -> StepRow:
        (
            job, attempt, step, name, token, tasks, spec, started_at, state, reason, ended, verified, source, warnings,
            detail, ended_at, derived, first_failed, srun_code,
        ) = row  # fmt: skip
        what = f"step {job}.{step}"
        try:
            known = loads(StepSpec, spec)
        except ValueError as error:
            raise AverError(f"{show_path(self._path)}: {what} can't be read: {error}") from None
        return StepRow(
            job, attempt, step, name, token, tasks, known, started_at, self.state(state, what), reason,
            self._exit(ended), _VERIFIED.get(verified), source, self._warnings(warnings, what), detail or "",
            ended_at, derived, first_failed, srun_code,
        )  # fmt: skip

    def task(self, row: Any) -> TaskRow:
        job, attempt, step, task, state, reason, ended, verified, source, warnings, detail, because, *rest = row
        ended_at, started_at, elapsed_s, user_s, sys_s, peak_bytes, node, cause = rest
        what = f"task {task} of step {job}.{step}"
        return TaskRow(
            job, attempt, step, task, self.state(state, what), reason, self._exit(ended), _VERIFIED.get(verified),
            source, self._warnings(warnings, what), detail or "", bool(because),
            ended_at, started_at, elapsed_s, user_s, sys_s, peak_bytes, node, self._cause(cause, what),
        )  # fmt: skip

    def _cause(self, text: str | None, what: str) -> TaskCause:
        try:
            return TaskCause() if text is None else loads(TaskCause, text)
        except ValueError as error:
            raise AverError(f"{show_path(self._path)}: the cause of {what} can't be read: {error}") from None

    def request(self, text: str, what: str) -> Request:
        found = self._requests.get(text)
        if found is None:
            try:
                found = self._requests[text] = loads(Request, text)
            except ValueError as error:
                raise AverError(f"{show_path(self._path)}: the request of {what} can't be read: {error}") from None
        return found

    def event(self, row: Any) -> StoredEvent:
        seq, *rest = row
        try:
            return StoredEvent(seq, decode_event(*rest))
        except ValueError as error:
            raise AverError(f"{show_path(self._path)}: event {seq} can't be read: {error}") from None
