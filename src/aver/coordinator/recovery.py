"""Coming back: runs are made again from the store, and the engine is asked what became of their attempts.

Used at the start and whenever a settled run is taken up again. Start-up is not special.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from aver.coordinator.engine_set import Engines
from aver.coordinator.order.allocations import extra_allocations
from aver.coordinator.requests.update import REQUEUES, apply_again, changes_of
from aver.coordinator.requests.update_fields import alter_again
from aver.coordinator.state.live import LiveAttempt, LiveRun
from aver.coordinator.state.machine import Driver
from aver.coordinator.state.steps import KILL, LiveStep, LiveTask
from aver.engines.api import (
    ALLOCATION,
    LOCAL,
    SLURM,
    Control,
    CouldNotAsk,
    Engine,
    Heard,
    NotListed,
    ObserveReply,
    Seen,
)
from aver.judge.witness_record import parse_record
from aver.model import reasons
from aver.model.events import PersonAsked, TaskEnded
from aver.model.evidence import Evidence, MachineRestarted, NobodySaid, WitnessVanished
from aver.model.slurm_names import STEP_CANCEL
from aver.model.states import State
from aver.plan.planner import RunCancel
from aver.plan.retry import LOST, AttemptSummary, decide
from aver.store.read.reader import Reader
from aver.store.read.rows import AttemptRow, JobRow

AGAIN = ("retry", "reinit")  # what a person asks for to have settled jobs run again
Planned = Mapping[tuple[int, int], int]  # by job and attempt: the number of the event that planned it
HELD = frozenset({reasons.JOB_HELD_USER, reasons.JOB_REQUEUED_HELD})


def load_run(driver: Driver, reader: Reader, number: int, now: float) -> LiveRun | None:
    """Make the run again as it was, with what is due; None if there is no such run."""
    row = reader.run(number)
    submission = reader.submission(number)
    if row is None or submission is None:
        return None
    run = LiveRun(number, row.first_job, submission)
    for event in reader.generated(number):
        run.plan.add(event.flow)
        run.add_segment(event.first_job, event.flow, event.job)
    run.state, run.round = row.state, row.round
    run.extra = extra_allocations(reader.asked(number))
    jobs = reader.jobs(run=number)
    attempts = reader.attempts_of_run(number)
    asked = reader.asked_by_seq(number)
    planned = _planned(reader, attempts, asked)
    _fill_attempts(run, attempts, asked, planned)
    run.held = {index for index, job in enumerate(jobs) if job.state is State.PENDING and job.reason in HELD}
    driver.adopt(run)
    newest = {attempt.job: attempt for attempt in attempts}
    _add_live_attempts(driver, reader, run, jobs, newest, {(row.job, row.attempt): row.key for row in attempts})
    instructions = run.plan.restore([job.state for job in jobs], _run_cancel(asked.values()))
    for job in jobs:
        if job.state is State.PENDING:
            driver.note_reason(job.id, job.reason)
    alter_again(run, [(one.job, changes_of(one)) for one in asked.values() if one.what == "update"])
    driver.depending.learn((*submission.flow.jobs, *run.altered.values()), reader)
    driver.take_up(run, instructions, _due_again(run, jobs, newest), now)
    _cancel_again(driver, run, asked, planned)
    apply_again(driver, run, asked, _first_that_counts(asked), planned)
    driver.want_allocations(number)
    return run


def _planned(reader: Reader, attempts: Sequence[AttemptRow], asked: Mapping[int, PersonAsked]) -> Planned:
    """When attempts were planned, by the numbers of events: of those jobs for which that may matter."""
    if not asked:
        return {}
    live = {row.job for row in attempts if not row.state.is_settled}
    return reader.planned_seqs(live | {event.job for event in asked.values() if event.job is not None})


def _first_that_counts(asked: Mapping[int, PersonAsked]) -> dict[int, int]:
    """By job, the event with which a person had it run again: what was before it does not count any more."""
    return {event.job: seq for seq, event in asked.items() if event.what in AGAIN and event.job is not None}


def _requeued(asked: Mapping[int, PersonAsked], planned: Planned) -> set[tuple[int, int]]:
    """Attempts that a person ended to begin again: the newest at that time. They count for no rule."""
    asks = [(seq, event.job) for seq, event in asked.items() if event.what in REQUEUES and event.job is not None]
    of_job: dict[int, list[tuple[int, int]]] = {job: [] for _, job in asks}
    for (job, attempt), seq in planned.items():
        if job in of_job:
            of_job[job].append((seq, attempt))
    found = set()
    for seq, job in asks:
        before = [attempt for at, attempt in of_job[job] if at < seq]
        if before:
            found.add((job, max(before)))
    return found


def _fill_attempts(
    run: LiveRun, attempts: Sequence[AttemptRow], asked: Mapping[int, PersonAsked], planned: Planned
) -> None:
    """How many attempts each job has had, and those that count for its retry rule: since a person last retried it."""
    since = _first_that_counts(asked)
    requeued = _requeued(asked, planned)
    counted: set[int] = set()  # jobs of which the last attempt in the history is known to have been followed
    for row in attempts:
        index = run.index_of(row.job)
        if index is None:
            continue
        run.attempts[index] = max(row.attempt, run.attempts.get(index, 0))
        spec = run.spec(index)
        has_rule = spec.retry is not None or spec.checkpoint is not None or row.engine != LOCAL
        if not has_rule or planned.get((row.job, row.attempt), 0) < since.get(row.job, 0):
            continue
        history = run.history.get(index)
        if history and index not in counted:
            if _is_retry(history[-1].verdict.state, row.engine):
                run.count_retry(index)
            counted.add(index)
        if row.verdict is not None and (row.job, row.attempt) not in requeued:
            run.history.setdefault(index, []).append(AttemptSummary(row.attempt, row.request, row.verdict))
            counted.discard(index)


def _add_live_attempts(
    driver: Driver, reader: Reader, run: LiveRun, jobs: Sequence[JobRow], newest: dict[int, AttemptRow],
    keys: dict[tuple[int, int], str],
) -> None:  # fmt: skip
    """Attempts without a verdict: they were planned or ran."""
    for index, job in enumerate(jobs):
        row = newest.get(job.id)
        if row is None or row.state.is_settled or job.state.is_settled:
            continue
        attempt = LiveAttempt(
            run.number, job.id, index, row.attempt, row.key, row.request, row.state, is_durable=True,
            started_at=row.started_at, engine=row.engine, is_suspended=row.state is State.SUSPENDED,
        )  # fmt: skip
        before = keys.get((job.id, row.attempt - 1))
        if row.engine == SLURM and run.spec(index).slurm_requeues and before is not None:
            attempt.goes_on_from = before
        run.requests[index] = row.request
        if row.request.gpus:
            given = reader.gpus_given(job.id, row.attempt)
            attempt.gpus, attempt.has_gpus = given or (), given is not None
        driver.attempts[attempt.key] = attempt
        driver.by_job[job.id] = attempt
        _add_live_steps(driver, attempt, reader)


def _add_live_steps(driver: Driver, attempt: LiveAttempt, reader: Reader) -> None:
    """The attempt's steps that have not ended, with the tasks of theirs that have."""
    for row in reader.steps(attempt.job, attempt.attempt):
        driver.steps.note_number(attempt.key, row.step)
        if row.state.is_settled:
            driver.steps.note_end(attempt.key, row.step)
            continue
        is_clusters = attempt.engine != LOCAL
        keys = [f"{attempt.key}.s{row.step}.t{rank}" for rank in range(row.tasks)]
        tasks = [LiveTask(rank, key, is_dispatched=is_clusters) for rank, key in enumerate(keys)]
        for one in reader.tasks(row.job, row.attempt, row.step):
            tasks[one.task].verdict = one.verdict
            tasks[one.task].because = one.because
            tasks[one.task].ended_at = one.ended_at
            tasks[one.task].cause = one.cause
            tasks[one.task].evidence += _records(reader, row.job, row.attempt, row.step, one.task)
        step = LiveStep(attempt, row.step, row.token, row.spec, tasks, is_open=is_clusters and row.spec.is_open)
        driver.steps.restore(step)


def _records(reader: Reader, job: int, attempt: int, step: int, task: int) -> list[Evidence]:
    """What the task's witness said, if it was a witness who said it."""
    for stored in reader.events(job=job):
        event = stored.event
        if isinstance(event, TaskEnded) and (event.attempt, event.step, event.task) == (attempt, step, task):
            try:
                return [parse_record(json.loads(event.said))]
            except ValueError:
                return []
    return []


def _is_retry(state: State, engine: str) -> bool:
    """Whether the attempt after one that ended so took a retry of the run's budget."""
    return state is not State.CHECKPOINTED and not (engine != LOCAL and state in LOST)


def _due_again(run: LiveRun, jobs: Sequence[JobRow], newest: dict[int, AttemptRow]) -> dict[int, float]:
    """Jobs that wait for another attempt by their own rule, whatever they wait for by now, and from when on."""
    due: dict[int, float] = {}
    for index, job in enumerate(jobs):
        row = newest.get(job.id)
        history = run.history.get(index)
        if job.state is not State.PENDING or row is None or row.verdict is None or not history:
            continue
        if history[-1].attempt != row.attempt:
            continue  # requeued: that is no retry by its rule
        if _is_retry(row.verdict.state, row.engine):
            run.count_retry(index)
        again = decide(run.spec(index), history[:-1], row.verdict, None, row.request, row.engine != LOCAL)
        ended_at = row.ended_at if row.ended_at is not None else row.planned_at
        if again is not None:
            run.requests[index] = again.request
            due[index] = ended_at + again.delay_s
        else:
            due[index] = ended_at
    return due


def ask_engine(driver: Driver, engines: Engines, now: float) -> None:
    """Ask what became of every live attempt, and put each where it belongs."""
    for name in (LOCAL, SLURM, ALLOCATION):
        attempts = [attempt for attempt in driver.attempts.values() if attempt.engine == name]
        replies = engines.observe([attempt.key for attempt in attempts], name)
        for attempt, reply in zip(attempts, replies, strict=True):
            if name == LOCAL:
                _put_local(driver, attempt, reply, now)
            else:
                _put_on_cluster(driver, engines, attempt, reply, now)


def _put_on_cluster(driver: Driver, engines: Engines, attempt: LiveAttempt, reply: ObserveReply, now: float) -> None:
    """The engine's shelf has all that was ever handed over; what is not on it never was."""
    if isinstance(reply, Seen):
        driver.starting.occupy(attempt)
    elif attempt.goes_on_from and isinstance(engines.observe([attempt.goes_on_from], SLURM)[0], Seen):
        driver.starting.occupy(attempt)
        engines.adopt([(attempt.goes_on_from, attempt.key)])
    elif isinstance(reply, CouldNotAsk):  # it may have been handed over: never twice
        driver.starting.occupy(attempt)
        unknown = NobodySaid(now, 0.0, "not asked")
        driver.heard(Heard(attempt.key, "coordinator", reply.text, unknown), now)
    elif attempt.state is State.PENDING:
        driver.starting.wait_again(attempt)
        if attempt.cancel_asked:
            driver.ending.end_cancelled(attempt, now)
    else:
        driver.starting.occupy(attempt)
        text = "what was handed to Slurm is gone from the home"
        driver.heard(Heard(attempt.key, "coordinator", text, NobodySaid(now, 0.0, "not asked")), now)


def _put_local(driver: Driver, attempt: LiveAttempt, reply: ObserveReply, now: float) -> None:
    match reply:
        case Seen() | CouldNotAsk():
            driver.starting.occupy(attempt)
        case NotListed() if not driver.identity.is_of_this_boot(attempt.key):
            driver.starting.occupy(attempt)
            driver.restarted(attempt, now)
        case NotListed() if attempt.state is State.PENDING:  # no witness ever began it
            driver.starting.wait_again(attempt)
            if attempt.cancel_asked:
                driver.ending.end_cancelled(attempt, now)
        case NotListed():
            driver.starting.occupy(attempt)
            vanished = WitnessVanished(now)
            driver.heard(Heard(attempt.key, "coordinator", "its witness and its journal are gone", vanished), now)


def ask_engine_of_tasks(driver: Driver, engine: Engine, now: float) -> None:
    """The same for the tasks of this machine's live steps. One that never began waits for its srun, which comes back.

    Of a cluster's tasks only their records tell, whatever became of this machine.
    """
    live = [(step, task) for step, task in driver.steps.live_tasks() if step.attempt.engine == LOCAL]
    tasks = [(step, task) for step, task in live if task.verdict is None]
    for (_, task), reply in zip(tasks, engine.observe([task.key for _, task in tasks]), strict=True):
        if not isinstance(reply, NotListed):
            task.is_dispatched = True
        elif not driver.identity.is_of_this_boot(task.key):
            evidence = MachineRestarted(now, task.key.split(".")[3], driver.identity.boot[:8])
            driver.steps.heard(Heard(task.key, "machine", "the machine was restarted", evidence), now)


def _run_cancel(asked: Iterable[PersonAsked]) -> RunCancel:
    """Whether the run counts as cancelled: until somebody retries it."""
    answer = RunCancel.NO
    for event in asked:
        if event.what in AGAIN:
            answer = RunCancel.NO
        elif event.what == "cancel" and event.job is None:
            answer = RunCancel.NOW if event.detail == "now" or answer is RunCancel.NOW else RunCancel.FINISHERS_RUN
    return answer


def _kill_again(driver: Driver, attempts: Sequence[LiveAttempt], event: PersonAsked) -> None:
    """The same for a step."""
    for attempt in attempts:
        for step in driver.steps.live_of(attempt.key):
            if str(step.number) == event.detail:
                keys = [task.key for task in step.tasks if task.verdict is None]
                driver.out.controls += [Control(key, "cancel", signal=KILL) for key in keys]


def _cancel_again(driver: Driver, run: LiveRun, asked: Mapping[int, PersonAsked], planned: Planned) -> None:
    """A cancellation that was durable and perhaps not acted on is passed on again: twice is harmless."""
    live = [attempt for attempt in driver.attempts.values() if attempt.run == run.number]
    for seq, event in asked.items():
        if event.what not in ("cancel", STEP_CANCEL):
            continue
        meant = [one for one in live if event.job in (None, one.job) and planned[one.job, one.attempt] < seq]
        if event.what == STEP_CANCEL:
            _kill_again(driver, meant, event)
            continue
        for attempt in meant:
            spares = event.job is None and event.detail != "now" and run.plan.is_finisher(attempt.index)
            if not spares:
                attempt.cancel_asked = True
                driver.out.controls.append(Control(attempt.key, "cancel"))
