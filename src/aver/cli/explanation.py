"""What happened to a job: the sentence, the timeline, the next commands.

The sentence and the next commands are `render.verdict`'s. The timeline is the job's events in order,
each in plain words, with the source's own words kept beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from aver.cli.facts import jobs_facts
from aver.cli.output.documents import Explained, Happening
from aver.cli.session import Session
from aver.engines.registry import capabilities_of
from aver.model import events as ev
from aver.model import reasons
from aver.model.evidence import WitnessRecord
from aver.model.states import State
from aver.plan.planner import Plan
from aver.render import verdict as render
from aver.render.timeline import is_about, parse_said, tell
from aver.store.read.rows import JobRow

AT_THE_CLUSTER = "somebody at the cluster"


def explain(session: Session, job: JobRow) -> Explained:
    """Put together what the store knows about the job."""
    reader = session.found_reader(str(job.id))
    session.mask([job.run])
    happened = events_of(session, job)
    attempts = reader.attempts(job.id)
    request = attempts[-1].request if attempts else session.spec(job).request
    record = last_record(happened, job.attempt)
    verdict = job.verdict
    if verdict is None:
        sentence = render.unsettled_sentence(job.state, job.reason)
        needs = _undecided_needs(session, job) if job.reason == reasons.DEPENDENCY else []
        sentence += f" It needs {', '.join(needs)}." if needs else ""
        steps = _unsettled_steps(job)
    else:
        sentence = render.sentence(verdict, record, request, cancelled_by(happened))
        steps = render.next_steps(verdict, job.id, record, request)
        if verdict.state in (State.OUT_OF_MEMORY, State.TIMEOUT) and not session.run_row(job.run).is_single:
            others = (step for step in steps if not step.startswith("aver run "))
            steps = (f"aver recover {job.run} --dry-run", *others)
    told = [one for event in happened for one in tell(event, job.id)]
    timeline = tuple(Happening(one.at, one.source, one.what, one.attempt, one.said) for one in told)
    return Explained(jobs_facts(session, [job])[0], sentence, timeline, steps)


def _undecided_needs(session: Session, job: JobRow) -> list[str]:
    """The needs that the job waits for, each with its own member's values."""
    reader = session.found_reader(str(job.id))
    plan = Plan(session.submission(job.run).flow)
    for batch in reader.generated(job.run):
        plan.add(batch.flow)
    rows = reader.jobs(job.run)
    plan.restore([row.state for row in rows])
    return plan.waits_for([row.id for row in rows].index(job.id))


def events_of(session: Session, job: JobRow) -> list[ev.Event]:
    """The job's own events, the one that made it, and requests to its whole run, by their numbers.

    A wall clock may be set back. No event of another job is read.
    """
    reader = session.found_reader(str(job.id))
    run = session.run_row(job.run)
    found: dict[int, ev.Event] = {stored.seq: stored.event for stored in reader.events(run=run.id, job=job.id)}
    found |= {seq: event for seq, event in reader.asked_by_seq(run.id).items() if event.job is None}
    if job.first_job == run.first_job:  # a run's submission is its first event
        found[0] = ev.RunSubmitted(run.submitted_at, run.id, run.first_job, session.submission(run.id))
    else:
        made = reader.generated_by_seq(run.id).items()
        found |= {seq: event for seq, event in made if event.first_job == job.first_job}
    return [event for _, event in sorted(found.items()) if is_about(event, job.id, job.first_job)]


def last_record(happened: list[ev.Event], attempt: int) -> WitnessRecord | None:
    """The exit record of this attempt, if its witness left one."""
    for event in reversed(happened):
        if isinstance(event, ev.Observed) and event.attempt == attempt:
            said = parse_said(event.source, event.said)
            if isinstance(said, WitnessRecord):
                return said
    return None


def cancelled_by(happened: Iterable[ev.Event]) -> str | None:
    """Who last asked for it since the newest attempt was planned: what was asked before ended another one.

    Nobody else than Aver cancels on this machine; on a cluster anybody may who has the right to.
    """
    by = None
    for event in happened:
        if isinstance(event, ev.AttemptPlanned):
            by = AT_THE_CLUSTER if capabilities_of(event.engine).is_shared else None
        elif isinstance(event, ev.PersonAsked) and event.what == "cancel":
            by = event.by
    return by


def _unsettled_steps(job: JobRow) -> tuple[str, ...]:
    match job.state:
        case State.PENDING if job.reason == "JobHeldUser":
            return (f"aver release {job.id}", f"aver cancel {job.id}")
        case State.PENDING if job.reason in (reasons.ALLOCATION_TOO_SMALL, reasons.NO_ALLOCATION):
            return (f'aver allocate {job.run} "-N 1 --exclusive --mem=0 -t TIME"', f"aver cancel {job.id}")
        case State.PENDING:
            return (f"aver watch {job.id}", f"aver cancel {job.id}")
        case _:
            return (f"aver log {job.id} -f", f"aver watch {job.id}", f"aver cancel {job.id}")
