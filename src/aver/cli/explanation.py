"""What happened to a job: the sentence, the timeline, the next commands.

The sentence and the next commands are `render.verdict`'s. The timeline is the job's events in order,
each in plain words, with the source's own words kept beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from aver.cli.facts import edited_spec, jobs_facts
from aver.cli.output.documents import Explained, Happening
from aver.cli.session import Session
from aver.engines.api import Capabilities
from aver.engines.registry import capabilities_of
from aver.model import events as ev
from aver.model import reasons
from aver.model.job import JobSpec, Request
from aver.model.states import STARTED, UNSETTLED, State
from aver.plan.packing import NOTHING, Room, room_of
from aver.printable import one_line
from aver.render import verdict as render
from aver.render.timeline import in_order, is_about, last_record, tell_folded
from aver.store.read.job_list import BY_NUMBER, Wanted, find_jobs
from aver.store.read.rows import AttemptRow, JobRow, RunRow

AT_THE_CLUSTER = "somebody at the cluster"
NEW_ROUND = ("retry", "reinit")
SOON_S = 0.5  # an attempt that is due before this is not announced
MOST_WAITING = 100  # pending jobs that are read to find one that waits for no other
SHOWN = 5  # jobs that are named in one sentence
IN_THE_QUEUE = (reasons.PRIORITY, reasons.RESOURCES, reasons.JOB_ARRAY_TASK_LIMIT, reasons.MAX_JOBS)
HERE = UNSETTLED - {State.PENDING, State.SETTLING}  # may have room on this machine


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
        sentence, steps = _unsettled(session, job, happened, attempts)
    else:
        sentence = render.sentence(verdict, record, request, cancelled_by(happened))
        steps = render.next_steps(verdict, job.id, record, request, job.run)
    told = in_order(tell_folded(happened, job.id))
    timeline = tuple(Happening(one.at, one.source, one.what, one.attempt, one.said) for one in told)
    return Explained(jobs_facts(session, [job])[0], sentence, timeline, steps)


def _undecided_needs(session: Session, job: JobRow) -> list[str]:
    """The needs that the job waits for, each with its own member's values."""
    from aver.plan.planner import Plan  # few jobs wait for others

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


def _unsettled(
    session: Session, job: JobRow, happened: list[ev.Event], attempts: list[AttemptRow]
) -> tuple[str, tuple[str, ...]]:
    """What an unsettled job does or waits for, and the commands to type next."""
    asked = cancel_asked(happened)
    if job.state in STARTED and asked is not None:
        from aver.config import load_config  # few jobs are being ended

        own_s = session.spec(job).kill_wait_s
        is_here = bool(attempts) and not capabilities_of(attempts[-1].engine).has_queue
        wait_s = (load_config().kill_wait_s if own_s is None else own_s) if is_here else None
        force = () if asked.detail == "force" else (f"aver cancel {job.id} --force",)
        sentence = ending_sentence(asked, wait_s, time.time())
        if job.reason == reasons.CANNOT_BE_ENDED:
            sentence += f" {render.unsettled_sentence(job.state, job.reason)}"
        return sentence, (f"aver watch {job.id}", *force)
    words = waiting_words(session, job, happened) if job.state is State.PENDING else ""
    sentence = f"Waiting {words}." if words else render.unsettled_sentence(job.state, job.reason)
    return sentence, _unsettled_steps(job)


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


def waiting_words(
    session: Session, job: JobRow, happened: Iterable[ev.Event] = (), machine: MachineUse | None = None
) -> str:
    """What a pending job waits for: `for 2 CPUs: jobs 518, 519 have them`; "" where its reason says all there is.

    Several jobs that are explained at the same moment share `machine`.
    """
    spec = edited_spec(session, job)
    match job.reason:
        case reasons.DEPENDENCY:
            return _needs(session, job, spec)
        case reasons.LICENSES if spec.pools:
            return _pools(session, spec)
        case _ if job.reason in IN_THE_QUEUE and not _can(session, job, spec).has_queue:
            return _parallel(session, job, spec) or (machine or MachineUse(session)).missing(spec.request)
        case reasons.BEGIN_TIME if spec.begin_at is not None and spec.begin_at > time.time():
            return f"for its begin time, {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(spec.begin_at))}"
        case reasons.JOB_HELD_USER:
            by = [event.by for event in happened if isinstance(event, ev.PersonAsked) and event.what == "hold"]
            return f"until it is released; held by {by[-1] if by else 'its submitter'}"
        case reasons.RETRY:
            return _retry(session, job, spec)
        case _:
            return ""


class Waits(NamedTuple):
    reason: str
    sentence: str  # job 3 (train) is waiting for 2 CPUs: job 1 has them


def first_waiting(session: Session, run: int) -> Waits | None:
    """Why no job of the run has started: what its first job waits for that waits for no other.

    None if one has started, or is about to.
    """
    reader = session.found_reader(str(run))
    if reader.jobs(run, frozenset(State) - {State.PENDING}, limit=1):
        return None
    pending = reader.jobs(run, frozenset({State.PENDING}), limit=MOST_WAITING)
    if not pending:
        return None
    job = next((job for job in pending if job.reason != reasons.DEPENDENCY), pending[0])
    words = waiting_words(session, job)
    if job.attempt and not words:
        return None  # its next attempt begins at once
    name = "" if session.run_row(run).is_single else f" ({one_line(job.name)})"
    return Waits(
        job.reason,
        f"job {job.id}{name} {f'is waiting {words}' if words else render.moved_words(job.state, job.reason)}",
    )


def _retry(session: Session, job: JobRow, spec: JobSpec) -> str:
    """When the next attempt is due; "" if its rule has it begin at once."""
    from aver.plan.retry import AttemptSummary, decide  # few jobs wait for a retry

    reader = session.found_reader(str(job.id))
    rounds = [event.at for event in reader.asked(job.run) if event.what in NEW_ROUND and event.job in (None, job.id)]
    rows = [row for row in reader.attempts(job.id) if row.planned_at >= max(rounds, default=0.0)]
    over = [AttemptSummary(row.attempt, row.request, row.verdict) for row in rows if row.verdict is not None]
    if not over or rows[-1].ended_at is None:
        return ""
    last = over[-1]
    again = decide(spec, over[:-1], last.verdict, None, last.request)
    left_s = 0.0 if again is None else rows[-1].ended_at + again.delay_s - time.time()
    if left_s < SOON_S:
        return ""
    words = render.short_words(last.verdict.state, last.verdict.exit, last.verdict.reason)
    ended = f"{last.verdict.state}{words and f' ({words})'}"
    return f"for attempt {last.attempt + 1}, due in {render.duration_words(left_s)}; attempt {last.attempt} was {ended}"


def cancel_asked(happened: Iterable[ev.Event]) -> ev.PersonAsked | None:
    """The first cancellation of the newest attempt, or one that forces it."""
    found: ev.PersonAsked | None = None
    for event in happened:
        if isinstance(event, ev.AttemptPlanned):
            found = None
        elif (
            isinstance(event, ev.PersonAsked) and event.what == "cancel" and (found is None or event.detail == "force")
        ):
            found = event
    return found


def ending_sentence(asked: ev.PersonAsked, kill_wait_s: float | None, now: float) -> str:
    """A job that is being cancelled; `kill_wait_s` is None where a cluster sends the signals."""
    ago = render.duration_words(max(0.0, now - asked.at))
    if asked.detail == "force":
        return f"Being cancelled by {asked.by}: KILL sent {ago} ago."
    if kill_wait_s is None:
        return f"Being cancelled by {asked.by}, asked {ago} ago."
    left = asked.at + kill_wait_s - now
    kill = f"KILL in {render.duration_words(left)}" if left > 0 else "KILL sent"
    return f"Being cancelled by {asked.by}: TERM sent {ago} ago, {kill}."


def _can(session: Session, job: JobRow, spec: JobSpec) -> Capabilities:
    return capabilities_of(spec.engine or session.submission(job.run).engine)


def _needs(session: Session, job: JobRow, spec: JobSpec) -> str:
    reader = session.found_reader(str(job.id))
    names = _undecided_needs(session, job)
    rows: list[JobRow] = []
    for name in names[:SHOWN]:
        found = session.find(f"{job.run}/{name}")
        rows += found if not isinstance(found, RunRow) else ()
    for term in spec.after.terms if spec.after is not None else ():
        for number, _ in term.jobs[:SHOWN]:
            row = reader.job(number)
            rows += reader.jobs(number, UNSETTLED, limit=SHOWN) if row is None else [row]
    waits = [row for row in rows if not row.state.is_settled]
    return f"for {_named(waits, lambda row: f'{row.id} ({one_line(row.name)}) {row.state}')}" if waits else ""


def _pools(session: Session, spec: JobSpec) -> str:
    """Which pools have too little left, and which jobs have the rest."""
    from aver.config import load_config
    from aver.report.pools import pool_facts  # few ask for it

    reader = session.found_reader("")
    known = {one.name: one for one in pool_facts(load_config(), reader)}
    parts = []
    for name, amount in spec.pools:
        pool = known.get(name)
        if pool is None:
            parts.append(f"for pool {name}, which is not there: aver pool set {name} N")
        elif pool.used + amount > pool.size:
            rows = list(reader.jobs_by_id(pool.jobs).values())
            verb = "has" if len(rows) == 1 else "have"
            has = f": {_named(rows, lambda row: str(row.id))} {verb} {pool.used} of {pool.size}" if rows else ""
            small = f", which has {pool.size}: aver pool set {name} N" if pool.size < amount else ""
            parts.append(f"for {amount} of pool {name}{small}{has}")
    return ", ".join(parts)


class MachineUse:
    """What this machine has for jobs, and which jobs have it: read when it is first asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _taken(self) -> list[tuple[JobRow, Request]]:
        reader = self._session.found_reader("")
        rows = reader.listed(find_jobs(reader, Wanted(states=HERE, sort=BY_NUMBER), None, time.time())[0])
        return [(row, attempts[-1].request) for row in rows if (attempts := reader.attempts(row.id))
                and not capabilities_of(attempts[-1].engine).has_queue]  # fmt: skip

    @cached_property
    def _left(self) -> tuple[int | None, Room, Room]:
        """The limit of running jobs, what the machine has, and what of that is free."""
        from aver.config import load_config  # few ask for it
        from aver.engines.local.capabilities import room_here

        config = load_config()
        total = room_here(config)
        return config.max_running, total, total - sum((room_of(one) for _, one in self._taken), start=NOTHING)

    def missing(self, request: Request) -> str:
        """What is missing for this request, and who has it; "" if only jobs before it in the queue come first."""
        most, total, left = self._left
        if most is not None and len(self._taken) >= most:
            return f"for max_running ({most}) of the settings: {_running([row for row, _ in self._taken])}"
        wanted = room_of(request)
        memory = render.limit_words(total.mem_bytes & -(1 << 20))
        kinds = [
            (_count(request.cpus, "CPU"), wanted.millicpus, total.millicpus, left.millicpus, total.cpus, "cpus"),
            (_count(request.gpus, "GPU"), wanted.gpus, total.gpus, left.gpus, total.gpus, "gpus"),
            (
                f"{render.limit_words(wanted.mem_bytes)} of memory",
                wanted.mem_bytes, total.mem_bytes, left.mem_bytes, memory, "mem_bytes",
            ),
        ]  # fmt: skip
        parts = []
        for what, asked, there, free, there_text, name in kinds:
            if asked > there:  # it had more when the job was submitted, or other settings
                parts.append(f"for {what}, and this machine has {there_text}: it never begins here unless it is edited")
            elif asked > free:
                holders = [row for row, one in self._taken if getattr(one, name)]
                verb = "has" if len(holders) == 1 else "have"
                parts.append(
                    f"for {what}" + (f": {_named(holders, lambda row: str(row.id))} {verb} them" if holders else "")
                )
        return "; ".join(parts)


def _count(number: int | float, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _parallel(session: Session, job: JobRow, spec: JobSpec) -> str:
    reader = session.found_reader(str(job.id))
    flow = session.submission(job.run).flow
    wanted = Wanted(run=job.run, states=UNSETTLED - {State.PENDING}, sort=BY_NUMBER)
    running = reader.listed(find_jobs(reader, wanted, 1000, time.time())[0])
    own = None if spec.matrix is None else spec.matrix.max_parallel
    if own is not None:
        alike = [row for row in running if (row.first_job, row.spec) == (job.first_job, job.spec)]
        if len(alike) >= own:
            return f"for max_parallel ({own}) of its matrix: {_running(alike)}"
    if flow.max_parallel is None or len(running) < flow.max_parallel:
        return ""
    return f"for max_parallel ({flow.max_parallel}) of its run: {_running(running)}"


def _running(rows: Sequence[JobRow]) -> str:
    return f"{_named(rows, lambda row: str(row.id))} run{'s' if len(rows) == 1 else ''}"


def _named(rows: Sequence[JobRow], text: Callable[[JobRow], str]) -> str:
    """`jobs 4, 5 and 3 more`."""
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return f"job{'s' if len(rows) > 1 else ''} {', '.join(text(row) for row in rows[:SHOWN])}{more}"
