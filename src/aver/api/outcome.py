"""From the verdict of a job to what its future gives: a result, the function's own exception, or a JobError.

The result is that of the attempt that the verdict is about, and only if that is COMPLETED.
"""

from __future__ import annotations

from aver.api.job import Job
from aver.api.job_errors import Exited, JobError, Lost, RemoteTraceback, UnusableResult, kind_of
from aver.calls.files import RAISED, RETURNED, UNPICKLABLE, Outcome, Reference, load, newest_result, read_outcome
from aver.calls.user_code import Came, attempt
from aver.errors import AverError
from aver.home import Home
from aver.model.evidence import Verdict
from aver.model.states import State
from aver.render.timeline import last_record
from aver.render.verdict import sentence
from aver.report.tails import masked_tail
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow

TAIL_BYTES = 4096


def ended(home: Home, row: JobRow, reference: Reference) -> Came:
    """What the future of a settled job gives."""
    verdict = row.verdict
    if verdict is None:
        return Came(error=_job_error(Lost, home, row, None, f"job {row.id} is {row.state}, and nobody says why"))
    read = attempt(lambda: read_outcome(*reference, row.attempt))
    if read.error is not None:
        return Came(error=_unusable(home, row, verdict, f"the result of job {row.id} can't be read: {read.error}"))
    outcome: Outcome | None = read.value
    if verdict.state is State.COMPLETED:
        return _completed(home, row, verdict, outcome)
    is_exit = verdict.state is State.FAILED and verdict.exit is not None and verdict.exit.code > 0
    if outcome is not None and is_exit and outcome.kind == RAISED:
        return Came(error=_raised(home, row, verdict, outcome))
    if outcome is not None and is_exit and outcome.kind == UNPICKLABLE:
        return Came(error=_unusable(home, row, verdict, f"job {row.id}: {outcome.text}"))
    return Came(error=_job_error(kind_of(verdict), home, row, verdict))


def _completed(home: Home, row: JobRow, verdict: Verdict, outcome: Outcome | None) -> Came:
    if outcome is None or outcome.kind != RETURNED:
        text = f"job {row.id} exited with code 0 and left no result"
        return Came(error=_job_error(Exited, home, row, verdict, text))
    came = attempt(lambda: load(outcome.data, newest_result))
    if came.error is None:
        return came
    found = _unusable(home, row, verdict, f"the result of job {row.id} can't be unpickled: {came.error!r}")
    found.__cause__ = came.error
    return Came(error=found)


def _raised(home: Home, row: JobRow, verdict: Verdict, outcome: Outcome) -> BaseException:
    came = attempt(lambda: load(outcome.data, newest_result)).value
    found: BaseException
    if isinstance(came, BaseException):
        found = came
    else:  # it can't be unpickled here
        last = outcome.text.strip().rpartition("\n")[2]
        found = _job_error(Exited, home, row, verdict, f"job {row.id} raised {last}")
    found.__cause__ = RemoteTraceback(outcome.text)
    return found


def _unusable(home: Home, row: JobRow, verdict: Verdict, text: str) -> JobError:
    return _job_error(UnusableResult, home, row, verdict, text)


def _job_error(kind: type[JobError], home: Home, row: JobRow, verdict: Verdict | None, text: str = "") -> JobError:
    job = Job(row.id, home)
    why = text or _sentence(home, row, verdict)
    error = kind(why if text else f"{row.name} (job {row.id}) is {row.state}: {why}")
    error.verdict, error.why, error.job = verdict, why, job
    if row.attempt:
        error.log_tail = _tail(job)
    return error


def _sentence(home: Home, row: JobRow, verdict: Verdict | None) -> str:
    reader = Reader.open(home.database)
    if verdict is None or reader is None:
        return ""
    with reader:
        events = [stored.event for stored in reader.events(run=row.run, job=row.id)]
        attempts = reader.attempts(row.id)
    return sentence(verdict, last_record(events, row.attempt), attempts[-1].request if attempts else None)


def _tail(job: Job) -> str:
    """The end of the log; nothing where it can't be read."""
    try:
        path, masking = job._log()
        data, _ = masked_tail(path, TAIL_BYTES, masking)
    except AverError:
        return ""
    return data.decode("utf-8", "replace")
