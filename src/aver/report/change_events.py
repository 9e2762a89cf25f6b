"""The changes of jobs and runs as documents, one for each stored event that made one.

A document is made of its event alone, so the same number always gives the same document, whenever it is asked for.
"""

from __future__ import annotations

from aver.client.documents import ExitFacts, exit_facts, known_reason
from aver.model.events import Event, JobMoved, JobsGenerated, Observed, PersonAsked, RunMoved, RunSubmitted
from aver.model.evidence import Verdict
from aver.model.record import Record
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.store.read.rows import StoredEvent


class EventFacts(Record):
    """One change. `what` is submitted, generated, job, run or asked; what an event does not say is None.

    Of a job, `state` is the job's and `attempt_state` that of its attempt: they differ while a retry is due.
    """

    seq: int
    at: float
    what: str
    run: int
    job: int | None = None
    attempt: int | None = None
    state: str | None = None
    is_settled: bool | None = None
    attempt_state: str | None = None
    reason: str | None = None
    exit: ExitFacts | None = None
    verified: bool | None = None
    source: str | None = None
    detail: str = ""


def event_facts(stored: StoredEvent) -> EventFacts | None:
    """Return the document of an event; None if the event changes nothing that a user sees."""
    event: Event = stored.event
    match event:
        case RunSubmitted(at=at, run=run, submission=submission):
            text = f"{submission.flow.name}: {_jobs(FlowIndex(submission.flow).count)}"
            return EventFacts(stored.seq, at, "submitted", run, source=submission.origin.user, detail=text)
        case JobsGenerated(at=at, run=run, job=job, flow=flow):
            return EventFacts(stored.seq, at, "generated", run, job, detail=_jobs(FlowIndex(flow).count))
        case PersonAsked(at=at, run=run, job=job, by=by, what=what, detail=detail, reason=reason):
            text = "; ".join(filter(None, (f"{what}: {detail}" if detail else what, reason)))
            return EventFacts(stored.seq, at, "asked", run, job, source=by, detail=text)
        case RunMoved(at=at, run=run, state=state):
            return EventFacts(stored.seq, at, "run", run, state=state.value, is_settled=state.is_settled)
        case JobMoved(state=state, reason=reason, verdict=verdict):
            return _of_job(stored.seq, event, None, state, reason, None, verdict)
        case Observed(attempt=attempt, state=own, reason=reason, verdict=verdict):
            state = event.job_state or own
            shown = reason if event.job_reason is None else event.job_reason
            return _of_job(stored.seq, event, attempt, state, shown, own, verdict)
        case _:
            return None


def _of_job(
    seq: int,
    event: JobMoved | Observed,
    attempt: int | None,
    state: State,
    reason: str,
    attempt_state: State | None,
    verdict: Verdict | None,
) -> EventFacts:
    return EventFacts(
        seq,
        event.at,
        "job",
        event.run,
        event.job,
        attempt,
        state.value,
        state.is_settled,
        None if attempt_state is None else attempt_state.value,
        known_reason(reason),
        None if verdict is None else exit_facts(verdict.exit),
        None if verdict is None else verdict.verified,
        event.source if isinstance(event, Observed) else None if verdict is None else verdict.source,
        "" if verdict is None else verdict.detail,
    )


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
