"""The one door to the live state: `apply` makes of an event what it says, and does nothing else.

Live, `emit` applies an event and hands it to the next commit; after a restart `recovery` applies the stored ones. What
follows from the state (an order, a signal, another event) is the other modules': they look at the state, never at
whether it is new.

The table of moves (docs/design/states.md) is enforced here. A move that it does not have is a bug: it raises
IllegalMove. The coordinator's program logs it instead and goes on with the event, since the store derives the same
from it, and since running jobs must not suffer from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aver.coordinator.state import changes
from aver.coordinator.state.attempt import Ended, LiveAttempt, LiveStep, LiveTask, Parked, Reading, Running
from aver.coordinator.state.live import LiveState
from aver.coordinator.state.run import LiveRun, Wait
from aver.model import reasons
from aver.model.codec import loads
from aver.model.events import (
    AttemptPlanned,
    Event,
    Fingerprinted,
    FlowReplaced,
    GpusGiven,
    JobMoved,
    JobsEnded,
    JobsGenerated,
    Observed,
    PersonAsked,
    PoolSized,
    RunMoved,
    RunPruned,
    RunSubmitted,
    StepEnded,
    StepStarted,
    TaskEnded,
)
from aver.model.evidence import Verdict
from aver.model.job import Allocation
from aver.model.slurm_names import STEP_CANCEL, STEP_UPDATE, STEP_WAIT
from aver.model.states import STARTED, UNSETTLED, State, attempt_may_move, may_move
from aver.plan.planner import RunCancel
from aver.plan.retry import AttemptSummary, Why, decide, requeues

ALLOCATE = "allocate"
NOW, FORCE = "now", "force"  # details of a cancellation: finishers of the run too; KILL at once
AGAIN = ("retry", "reinit")  # what a person asks for to have settled jobs run again
REQUEUES = {  # what a person may ask for, and the reason with which the job waits then
    "requeue": reasons.BEGIN_TIME,
    "requeuehold": reasons.JOB_REQUEUED_HELD,
    "requeuespecial": reasons.JOB_SPECIAL_EXIT,
}
REQUEUE_DELAY_S = 2.0  # whoever asks meanwhile sees that it was requeued
WORDS = frozenset(  # what a person may ask for that changes the state
    {
        "cancel", "suspend", "resume", "hold", "release", "update", ALLOCATE, STEP_CANCEL, STEP_UPDATE, STEP_WAIT,
        *REQUEUES, *AGAIN,
    }
)  # fmt: skip
BEGUN = STARTED | {State.SETTLING}
RULE_WORDS = frozenset(str(why) for why in Why)  # pending reasons of an attempt that a rule makes


def emit(live: LiveState, event: Event) -> None:
    """Apply the event, and have it committed."""
    apply(live, event)
    live.out.events.append(event)


def apply(live: LiveState, event: Event) -> None:
    """Change the state by this event, and nothing else. An event of a run that is not live changes nothing."""
    _APPLY[type(event)](live, event)


# ---- runs ---------------------------------------------------------------------------------------


def _run_submitted(live: LiveState, event: RunSubmitted) -> None:
    """Raise ValueError, and change nothing, if the flow is not a graph."""
    run = LiveRun(event.run, event.first_job, event.submission, live.capabilities_of)
    run.usual_rules = live.usual_rules
    live.roster.add(run)
    live.next_id = max(live.next_id, event.run + 1, event.first_job + run.job_count)
    live.touched[run.number] = None


def _jobs_generated(live: LiveState, event: JobsGenerated) -> None:
    """Raise ValueError, and change nothing, if the jobs can't be added to the run's graph."""
    run = live.runs.get(event.run)
    if run is None:
        return
    run.instructions += run.plan.add(event.flow)
    segment = run.add_segment(event.first_job, event.flow, event.job)
    live.roster.note_numbers(event.first_job, run.number)
    live.next_id = max(live.next_id, event.first_job + segment.index.count)
    live.touched[run.number] = None


def _flow_replaced(live: LiveState, event: FlowReplaced) -> None:
    run = live.runs.get(event.run)
    if run is not None:
        live.runs[event.run] = run.with_flow(event.flow)
        live.touched[event.run] = None


def _run_moved(live: LiveState, event: RunMoved) -> None:
    run = live.runs.get(event.run)
    if run is not None:
        run.state, run.round = event.state, event.round


def _job_moved(live: LiveState, event: JobMoved) -> None:
    run = live.runs.get(event.run)
    index = None if run is None else run.index_of(event.job)
    if run is not None and index is not None:
        attempt = live.by_job.get(event.job)
        if attempt is not None and event.state not in UNSETTLED:
            _withdraw(live, run, attempt)
        _move_job(live, run, index, event.job, event.state, event.reason)


def _jobs_ended(live: LiveState, event: JobsEnded) -> None:
    """The same as `_job_moved` for each of them."""
    run = live.runs.get(event.run)
    first = None if run is None else run.index_of(event.first)
    if run is None or first is None:
        return
    indices = range(first, first + event.count)
    for index in indices if len(run.attempts) > event.count else [one for one in run.attempts if one in indices]:
        attempt = live.by_job.get(run.job_number(index))
        if attempt is not None:
            _withdraw(live, run, attempt)
    after = event.verdict.state
    for before in set(run.states[first : indices.stop]):
        if not may_move(before, after):
            live.on_illegal_move(f"one of the jobs {event.first} to {event.last} moved from {before} to {after}")
    run.states[first : indices.stop] = [after] * event.count
    for job in range(event.first, event.last + 1) if live.shown else ():
        live.shown.pop(job, None)
    run.note_all_settled(indices)
    run.moved += indices
    live.touched[run.number] = None


def _withdraw(live: LiveState, run: LiveRun, attempt: LiveAttempt) -> None:
    """The attempt was only planned, and its job ended before it: it is none, and the next one has its number."""
    remove_attempt(live, attempt)
    if attempt.attempt > 1:
        run.attempts[attempt.index] = attempt.attempt - 1
    else:
        run.attempts.pop(attempt.index, None)


def _move_job(live: LiveState, run: LiveRun, index: int, job: int, after: State, reason: str) -> None:
    before = run.states[index]
    if not may_move(before, after):
        live.on_illegal_move(f"job {job} moved from {before} to {after}")
    run.states[index] = after
    if after is State.PENDING:
        live.shown[job] = reason
    else:
        live.shown.pop(job, None)
    if after in UNSETTLED:
        if before not in UNSETTLED:
            run.moved.append(index)
            live.touched[run.number] = None
        return
    run.note_settled(index)
    run.moved.append(index)
    live.touched[run.number] = None


# ---- attempts -----------------------------------------------------------------------------------


def _attempt_planned(live: LiveState, event: AttemptPlanned) -> None:
    run = live.runs.get(event.run)
    index = None if run is None else run.index_of(event.job)
    if run is None or index is None:
        return
    can = live.capabilities_of(event.engine)
    attempt = LiveAttempt(
        event.run, event.job, index, event.attempt, event.key, event.request, event.engine, can, event.goes_on_from
    )
    attempt.cancel_asked = bool(event.goes_on_from) and index in run.still_cancelled
    run.still_cancelled.discard(index)
    run.note_planned(index, event.attempt)
    before = _newest(live, event.job, event.attempt)
    if before is not None:  # planned before a restart of the machine
        remove_attempt(live, before)
    live.attempts[event.key] = attempt
    live.by_job[event.job] = attempt


def _gpus_given(live: LiveState, event: GpusGiven) -> None:
    attempt = _newest(live, event.job, event.attempt)
    if attempt is not None:
        attempt.gpus, attempt.has_gpus = event.gpus, True


def _observed(live: LiveState, event: Observed) -> None:
    run = live.runs.get(event.run)
    if run is None:
        return
    attempt = _newest(live, event.job, event.attempt)
    index = run.index_of(event.job) if attempt is None else attempt.index
    if index is None:
        return
    if attempt is not None:
        _move_attempt(live, attempt, event)
    if event.attempt < run.attempts.get(index, 0):
        return  # of an older attempt: no news of the job
    after = event.state if event.job_state is None else event.job_state
    reason = event.reason if event.job_reason is None else event.job_reason
    _move_job(live, run, index, event.job, after, reason)
    if event.verdict is not None and after is State.PENDING and attempt is not None:
        _plan_another(live, run, attempt, event.verdict, event.at, reason)


def _move_attempt(live: LiveState, attempt: LiveAttempt, event: Observed) -> None:
    if not attempt_may_move(attempt.state, event.state):
        live.on_illegal_move(f"attempt {attempt.key} moved from {attempt.state} to {event.state}")
    attempt.state, attempt.shown_reason = event.state, event.reason
    if event.state is not State.PENDING:
        live.runs[attempt.run].note_given(attempt.index)
    usage = event.usage
    if usage is not None:
        attempt.started_at = usage.started_at
        attempt.node = usage.node or attempt.node
    if event.state in BEGUN:
        if not isinstance(attempt.phase, (Running, Parked, Reading)):
            attempt.phase = Running(attempt.started_at)
    elif event.verdict is not None and event.state not in UNSETTLED:
        attempt.phase = Ended(event.verdict)
        remove_attempt(live, attempt)


def remove_attempt(live: LiveState, attempt: LiveAttempt) -> None:
    """Drop the attempt and its steps from the live tables."""
    live.attempts.pop(attempt.key, None)
    live.behind.discard(attempt.key)
    if live.by_job.get(attempt.job) is attempt:
        del live.by_job[attempt.job]
    if attempt.steps is not None:
        live.waiting_steps.discard(attempt.key)
        for step in attempt.steps.live.values():
            for task in step.tasks:
                live.tasks.pop(task.key, None)
        for token in [token for token, step in live.steps.items() if step.attempt is attempt]:
            del live.steps[token]


def _plan_another(
    live: LiveState, run: LiveRun, attempt: LiveAttempt, verdict: Verdict, at: float, reason: str
) -> None:
    """The job is to have another attempt: by its rule, by the cluster, or since a person asked for it."""
    index = attempt.index
    if attempt.cancel_asked:
        run.still_cancelled.add(index)
    if reason in reasons.REQUEUED_HELD:
        run.held.add(index)
    if reason == reasons.BEGIN_TIME:
        run.due[index] = Wait(at, at + REQUEUE_DELAY_S)
    if reason not in RULE_WORDS:
        return
    history = run.history.setdefault(index, [])
    may_lose_nodes = attempt.can.may_lose_nodes
    is_requeued = requeues(run.spec(index), may_lose_nodes, live.requeues_lost)
    most_bytes = None if may_lose_nodes else live.packer.total.mem_bytes
    again = decide(run.spec(index), history, verdict, None, attempt.request, is_requeued, most_bytes)
    history.append(AttemptSummary(attempt.attempt, attempt.request, verdict))
    if reason == reasons.RETRY:
        run.count_retry(index)
    if again is None:
        run.due[index] = Wait(at, at)
    else:
        run.requests[index] = again.request
        run.due[index] = Wait(at, at + again.delay_s)


def _newest(live: LiveState, job: int, number: int) -> LiveAttempt | None:
    attempt = live.by_job.get(job)
    return attempt if attempt is not None and attempt.attempt == number else None


# ---- steps --------------------------------------------------------------------------------------


def _step_started(live: LiveState, event: StepStarted) -> None:
    attempt = _newest(live, event.job, event.attempt)
    if attempt is None:
        return
    table = attempt.step_table()
    step = live.steps.get(event.token)
    if step is None or step.attempt is not attempt:
        tells = attempt.can.tells_steps
        keys = [f"{attempt.key}.s{event.step}.t{rank}" for rank in range(event.spec.tasks)]
        tasks = [LiveTask(rank, key, is_dispatched=tells) for rank, key in enumerate(keys)]
        step = LiveStep(attempt, event.step, event.token, event.spec, tasks)
        step.is_open = tells and event.spec.is_open
        live.steps[event.token] = step
    table.live[event.step] = step
    table.next_number = max(table.next_number, event.step + 1)
    for task in step.tasks:
        live.tasks[task.key] = (step, task)


def _task_ended(live: LiveState, event: TaskEnded) -> None:
    step = _find_step(live, event)
    if step is None:
        return
    widen(live, step, event.task + 1)
    task = step.tasks[event.task]
    task.verdict, task.because, task.cause = event.verdict, event.because, event.cause
    if event.cause.is_warned and step.spec.warning is None:  # else it may be the step's own
        step.attempt.step_table().is_warned = True
    usage = event.usage
    ended_at = None if usage is None or usage.elapsed_s is None else usage.started_at + usage.elapsed_s
    task.ended_at = event.at if ended_at is None else ended_at
    seen_at = event.at - event.age_s
    if step.first_end_at is None or seen_at < step.first_end_at:
        step.first_end_at = seen_at
    if event.verdict.state is not State.COMPLETED:
        step.attempt.step_table().failed.add(step.number)
        if step.spec.kill_on_bad_exit:
            _end_others(step)


def widen(live: LiveState, step: LiveStep, tasks: int) -> None:
    """Add tasks to the step up to this number."""
    for rank in range(len(step.tasks), tasks):
        key = f"{step.attempt.key}.s{step.number}.t{rank}"
        task = LiveTask(rank, key, is_dispatched=step.attempt.can.tells_steps)
        step.tasks.append(task)
        live.tasks[key] = (step, task)


def _end_others(step: LiveStep) -> None:
    """One task's end is the end of the step: those that still run are ended because of it."""
    for task in step.tasks:
        if task.verdict is None:
            task.because = True


def _step_ended(live: LiveState, event: StepEnded) -> None:
    step = _find_step(live, event)
    if step is None:
        return
    step.state, step.srun_code = event.verdict.state, event.srun_code
    table = step.attempt.step_table()
    table.live.pop(step.number, None)
    table.ended.add(step.number)
    table.warnings += [f"step {event.job}.{step.number} ({step.spec.name}): {said}" for said in event.verdict.warnings]
    if event.verdict.state is State.OUT_OF_MEMORY:
        table.out_of_memory.add(step.number)
    for task in step.tasks:
        live.tasks.pop(task.key, None)


def _find_step(live: LiveState, event: TaskEnded | StepEnded) -> LiveStep | None:
    attempt = _newest(live, event.job, event.attempt)
    return None if attempt is None or attempt.steps is None else attempt.steps.live.get(event.step)


# ---- what persons ask for -----------------------------------------------------------------------


def _person_asked(live: LiveState, event: PersonAsked) -> None:
    run = live.runs.get(event.run)
    if run is None or event.what not in WORDS:
        return  # accept, signal, prune: what follows from them is said by other events
    if event.job is None:
        _asked_of_run(live, run, event)
        return
    index = run.index_of(event.job)
    if index is None:
        return
    attempt = live.by_job.get(event.job)
    match event.what:
        case "cancel":
            if attempt is not None:
                _cancel_asked(attempt, event)
        case "suspend" | "resume":
            if attempt is not None:
                attempt.ask_to_move(is_to_stop=event.what == "suspend")
                live.moving[attempt.key] = attempt
        case "hold":
            run.held.add(index)
        case "release":
            run.held.discard(index)
        case _ if event.what in REQUEUES:
            _requeue_asked(run, index, attempt, event)
        case "retry" | "reinit":
            run.begin_new_count(index)
            run.requests.pop(index, None)
            run.cancelled = RunCancel.NO
        case "update":
            changes.alter(run, index, attempt, changes.read(event.detail))
        case _ if event.what in (STEP_CANCEL, STEP_WAIT):
            _step_kill_asked(attempt, event)
        case _ if event.what == STEP_UPDATE:
            changes.alter_step(attempt, changes.read(event.detail))
        case _:
            live.on_illegal_move(f"somebody asked for {event.what!r} of job {event.job}")


def _asked_of_run(live: LiveState, run: LiveRun, event: PersonAsked) -> None:
    if event.what == ALLOCATE:
        run.extra.append(loads(Allocation, event.detail))
    if event.what != "cancel":
        return
    run.cancelled_by = event.by
    at_once = NOW in event.detail.split()
    if at_once or run.cancelled is RunCancel.NOW:
        run.cancelled = RunCancel.NOW
    else:
        run.cancelled = RunCancel.FINISHERS_RUN
    live.touched[run.number] = None
    for attempt in live.attempts.values():
        if attempt.run == run.number and (at_once or not run.plan.is_finisher(attempt.index)):
            _cancel_asked(attempt, event)


def _cancel_asked(attempt: LiveAttempt, event: PersonAsked) -> None:
    attempt.cancel_asked = True
    attempt.kill_asked = attempt.kill_asked or FORCE in event.detail.split()


def _requeue_asked(run: LiveRun, index: int, attempt: LiveAttempt | None, event: PersonAsked) -> None:
    if attempt is not None:
        attempt.requeue = event.what
    elif REQUEUES[event.what] in reasons.REQUEUED_HELD:
        run.held.add(index)
    else:
        run.due[index] = Wait(event.at, event.at + REQUEUE_DELAY_S)


def _step_kill_asked(attempt: LiveAttempt | None, event: PersonAsked) -> None:
    if attempt is None or attempt.steps is None or not event.detail.isdecimal():
        return
    step = attempt.steps.live.get(int(event.detail))
    if step is not None:
        step.kill_asked = True
        if event.what == STEP_WAIT:
            _end_others(step)


def _pool_sized(live: LiveState, event: PoolSized) -> None:
    live.packer.pools.resize(event.name, event.size)


def _nothing(live: LiveState, event: Event) -> None:
    """Ignore an event that changes nothing in the live state."""


_APPLY: dict[type, Callable[[LiveState, Any], None]] = {
    RunSubmitted: _run_submitted,
    JobsGenerated: _jobs_generated,
    FlowReplaced: _flow_replaced,
    RunMoved: _run_moved,
    JobMoved: _job_moved,
    JobsEnded: _jobs_ended,
    AttemptPlanned: _attempt_planned,
    GpusGiven: _gpus_given,
    Observed: _observed,
    StepStarted: _step_started,
    TaskEnded: _task_ended,
    StepEnded: _step_ended,
    PersonAsked: _person_asked,
    Fingerprinted: _nothing,
    PoolSized: _pool_sized,
    RunPruned: _nothing,
}
