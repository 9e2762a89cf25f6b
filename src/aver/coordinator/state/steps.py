"""Steps of running jobs: one `srun` each, one witness per task. The design is `docs/design/steps.md`.

No sockets, no disk, no clock. A task is handed to the engine after its step's intent is durable; each task's end is
an event; the last one makes the step's verdict.
"""

from __future__ import annotations

from aver.coordinator.state.attempt import LiveAttempt, LiveStep, LiveTask
from aver.coordinator.state.end import as_measured
from aver.coordinator.state.fold import emit
from aver.coordinator.state.live import LiveState
from aver.engines.api import Control, Heard
from aver.errors import UsageError
from aver.judge.local import cancelled_words
from aver.judge.step import JudgedTask, TaskRules, judge_step, judge_task, task_cause
from aver.model.events import PersonAsked, StepEnded, StepStarted, TaskEnded
from aver.model.evidence import (
    ActKind,
    CancelledBefore,
    LimitMoved,
    LimitPassed,
    Refused,
    Resumed,
    Suspended,
    TaskCause,
    Verdict,
    WitnessRecord,
    WitnessStart,
)
from aver.model.job import Scope, StepSpec
from aver.model.record import replace
from aver.model.slurm_names import STEP_CANCEL, STEP_WAIT
from aver.spec.patterns import names_task

KILL = 9
WAIT = "wait "  # timers of this kind, with the step's token

# ---- beginning ----------------------------------------------------------------------------------


def begin(
    live: LiveState, key: str, token: str, spec: StepSpec, streams: tuple[int, ...], now: float
) -> LiveStep:  # fmt: skip
    """Take a step of the attempt with this key; the same token is the same step. UsageError says why not."""
    known = live.steps.get(token)
    if known is not None and known.state is None:
        if not known.streams and any(not task.is_dispatched and task.verdict is None for task in known.tasks):
            known.streams = streams
            _dispatch(live, known, now)
        return known
    attempt = live.attempts.get(key)
    if attempt is None or not attempt.is_dispatched or attempt.is_parked or attempt.is_over_time:
        raise UsageError("Unable to create step: the job is not running")
    allowed = allowed_cpus(live, attempt)
    wanted = spec.tasks * spec.cpus_per_task
    if wanted > allowed and not spec.is_overlapping:
        raise UsageError(f"Unable to create step for job {attempt.job}: More processors requested than permitted")
    limit = attempt.request.mem_bytes
    if limit is not None and spec.mem_bytes is not None and spec.mem_bytes > limit:
        raise UsageError(f"Unable to create step for job {attempt.job}: Memory required by task is not available")
    of_job = {(resource, soft) for resource, soft, _ in live.runs[attempt.run].submission.origin.limits}
    spec = replace(spec, limits=tuple(limit for limit in spec.limits if limit not in of_job))
    table = attempt.step_table()
    number = table.next_number
    table.next_number += 1
    tasks = [LiveTask(rank, f"{key}.s{number}.t{rank}") for rank in range(spec.tasks)]
    cpus = 0 if spec.is_overlapping else wanted if spec.is_exact else allowed
    step = LiveStep(attempt, number, token, spec, tasks, streams=streams, cpus=cpus)
    live.steps[token] = step
    table.waiting.append(step)
    live.waiting_steps.add(key)
    _admit(live, attempt, now)
    return step


def is_waiting(step: LiveStep) -> bool:
    """Other steps of its job have the CPUs."""
    return step.attempt.steps is not None and step in step.attempt.steps.waiting


def has_waiting(live: LiveState) -> bool:
    """Whether a step waits for CPUs of its job."""
    return bool(live.waiting_steps)


def abandon(live: LiveState, key: str, number: int, now: float) -> tuple[int, ...]:
    """Drop a step that has not begun, since its srun is gone; return its descriptors. One that runs is not ended."""
    attempt = live.attempts.get(key)
    if attempt is None or attempt.steps is None:
        return ()
    unused: tuple[int, ...] = ()
    for step in [step for step in attempt.steps.waiting if step.number == number]:
        attempt.steps.waiting.remove(step)
        live.steps.pop(step.token, None)
        unused, step.streams = unused + step.streams, ()
        _admit(live, attempt, now)
    begun = attempt.steps.live.get(number)
    if begun is not None and not begun.streams and not any(task.is_dispatched for task in begun.tasks):
        cancel(live, begun, "the end of its srun", now)
    return unused


def allowed_cpus(live: LiveState, attempt: LiveAttempt) -> int:
    """The CPUs that the job asked for; the machine may have fewer, and then its tasks share them."""
    slurm = live.runs[attempt.run].spec(attempt.index).slurm
    return max(0 if slurm is None else slurm.asked_cpus, attempt.request.whole_cpus)


def _admit(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """Begin waiting steps for which the job has CPUs, in order."""
    table = attempt.step_table()
    while table.waiting and not attempt.is_over_time:
        step = table.waiting[0]
        used = sum(other.cpus for other in table.live.values())
        if step.cpus and used + step.cpus > allowed_cpus(live, attempt):
            break
        table.waiting.popleft()
        emit(
            live,
            StepStarted(now, attempt.run, attempt.job, attempt.attempt, step.number, step.token, step.spec),
        )
    if not table.waiting:
        live.waiting_steps.discard(attempt.key)


def intent_is_durable(live: LiveState, event: StepStarted, now: float) -> None:
    """Hand over the tasks of the step."""
    step = live.steps.get(event.token)
    if step is not None:
        step.is_durable = True
        _dispatch(live, step, now)


def _dispatch(live: LiveState, step: LiveStep, now: float) -> None:
    attempt = step.attempt
    if attempt.is_suspended or attempt.suspend_asked or attempt.key in live.moving:
        return
    if not step.is_durable or (needs_streams(step.spec) and not step.streams):
        return
    for task in step.tasks:
        if not task.is_dispatched and task.verdict is None and not task.because:
            task.is_dispatched = True
            live.out.task_starts.append((step, task))


def resume(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """The job goes on: so do steps that were asked for meanwhile."""
    for step in attempt.live_steps():
        _dispatch(live, step, now)


def move_limit(live: LiveState, attempt: LiveAttempt, due_s: float | None) -> None:
    """The job's limit passes then: the tasks' witnesses go by it, should nobody be here to end them."""
    attempt.due_s = due_s
    live.out.controls += [Control(key, "job_limit", due_s=due_s) for key in attempt.task_keys()]


def is_shared(spec: StepSpec, pattern: str | None) -> bool:
    """Whether all tasks of a step write to the one file of this pattern: srun opens it, once for all of them."""
    return spec.tasks > 1 and pattern is not None and pattern != "/dev/null" and not names_task(pattern)


def needs_streams(spec: StepSpec) -> bool:
    """Whether the tasks need descriptors of srun."""
    return spec.stdin is None or spec.stdout is None or is_shared(spec, spec.stdout) or is_shared(spec, spec.stderr)


# ---- evidence -----------------------------------------------------------------------------------


def heard(live: LiveState, one: Heard, now: float, rules: TaskRules = TaskRules(), because: bool = False) -> bool:
    """Take evidence of a task; False if no live step has it, or its end is known from before: its engine may forget it.

    `because`: it was ended since another task failed.
    """
    found = live.tasks.get(one.key)
    if found is None:
        return False
    step, task = found
    if isinstance(one.evidence, (Suspended, Resumed)):
        task.is_still = isinstance(one.evidence, Suspended)
        return True
    is_end = not isinstance(one.evidence, (WitnessStart, LimitMoved, LimitPassed))
    if is_end and task.verdict is not None:
        return False
    task.evidence.append(one.evidence)
    if not is_end:
        return True
    verdict = judge_task(task.evidence, rules)
    if verdict is not None:
        end_task(live, step, task, verdict, one, now, because or (task.because and _was_cancelled(one)))
    return True


def _was_cancelled(one: Heard) -> bool:
    """Whether its witness ended it on request, or may have: one that had ended by itself before counts as it is."""
    record = one.evidence
    return not isinstance(record, WitnessRecord) or any(act.kind is ActKind.CANCEL for act in record.acts)


def rejected(live: LiveState, task: LiveTask, text: str, now: float) -> None:
    """The engine refused it."""
    heard(live, Heard(task.key, "engine", text, Refused(now, text)), now)


def end_task(
    live: LiveState, step: LiveStep, task: LiveTask, verdict: Verdict, one: Heard, now: float, because: bool
) -> None:
    record = one.evidence if isinstance(one.evidence, WitnessRecord) else None
    attempt = step.attempt
    usage = None if record is None else as_measured(record, attempt.node or live.identity.host)
    cause = TaskCause() if record is None else task_cause(record)
    spared = [other for other in step.tasks if other.verdict is None and not other.because]
    ended = TaskEnded(
        now, attempt.run, attempt.job, attempt.attempt, step.number, task.number, one.said, verdict, usage, because,
        cause, 0.0 if step.spec.wait_s is None else one.age_s,
    )  # fmt: skip
    emit(live, ended)
    others = [other for other in spared if other.because and other is not task]
    live.after_commit += [(ended, Control(other.key, "cancel")) for other in others]  # heard again, both look alike
    watch_wait(live, step, now - one.age_s)
    if any(other.because for other in step.tasks if not other.is_dispatched and other.verdict is None):
        _cancel_undispatched(live, step, f"the end of task {task.number}", now)  # a crash came between the orders
        return
    if step.is_ended:
        end(live, step, now)


def end(live: LiveState, step: LiveStep, now: float) -> None:
    """Its last task has ended: the step has its verdict, and the next one that waits may begin."""
    judged = judge_step([JudgedTask(task.as_task(), task.verdict) for task in step.tasks], step.spec.is_open)
    attempt = step.attempt
    emit(
        live,
        StepEnded(
            now, attempt.run, attempt.job, attempt.attempt, step.number, judged.verdict, judged.derived,
            judged.first_failed, judged.srun_code,
        ),
    )  # fmt: skip
    _admit(live, attempt, now)


# ---- ending early -------------------------------------------------------------------------------


def watch_wait(live: LiveState, step: LiveStep, since: float) -> None:
    """Watch the time that --wait gives the other tasks after the first one's end; that of this one was then.

    Of several ends the first counts. The clock may have been set between them: the timer knows, their events do not.
    """
    if step.spec.wait_s is None or step.is_ended or step.kill_asked:
        return
    kind, job, until = f"{WAIT}{step.token}", step.attempt.job, since + step.spec.wait_s
    due = live.timers.due(kind, job)
    if due is None or until < due:
        live.timers.at(until, kind, job, since)


def wait_is_over(live: LiveState, token: str, now: float) -> None:
    """The time that --wait gives has passed: end the other tasks, with KILL at once, when that is durable."""
    step = live.steps.get(token)
    if step is not None and step.state is None and not step.kill_asked:
        _ask_to_kill(live, step, "srun", STEP_WAIT, now)


def kill(live: LiveState, step: LiveStep, by: str, now: float) -> None:
    """A person cancels the step: KILL at once, as Slurm does, after the request is durable."""
    _ask_to_kill(live, step, by, STEP_CANCEL, now)
    _cancel_undispatched(live, step, by, now)


def _ask_to_kill(live: LiveState, step: LiveStep, by: str, what: str, now: float) -> None:
    attempt = step.attempt
    asked = PersonAsked(now, attempt.run, attempt.job, by, what, str(step.number))
    emit(live, asked)
    live.after_commit += [(asked, control) for control in kills(step)]


def kills(step: LiveStep) -> list[Control]:
    """What tells the engine to end tasks of the step that are to be ended: all at once, or those that -K ends."""
    if step.kill_asked:
        return [Control(task.key, "cancel", signal=KILL) for task in step.running()]
    return [Control(task.key, "cancel") for task in step.running() if task.because]


def limits(step: LiveStep) -> list[Control]:
    """What tells the engine the time limit that a person gave the step."""
    return [Control(task.key, "limit", time_s=step.spec.time_s) for task in step.running() if step.limit_asked]


def end_all(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """The script has ended, or its job is cancelled: so are its steps."""
    table = attempt.step_table()
    for step in table.waiting:
        live.steps.pop(step.token, None)  # never begun: its srun is of a job that is over
    table.waiting.clear()
    live.waiting_steps.discard(attempt.key)
    end_begun(live, attempt, now)


def end_begun(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """End the steps that have begun; those that wait never begin in a job that is over its time limit."""
    by = "its job's time limit" if attempt.is_over_time else "the end of its job"
    for step in attempt.live_steps():
        cancel(live, step, by, now)


def cancel(live: LiveState, step: LiveStep, by: str, now: float) -> None:
    """End the step's tasks. Those that were never handed over never run."""
    verb = "time_out" if step.attempt.is_over_time else "cancel"
    live.out.controls += [Control(task.key, verb) for task in step.running()]
    _cancel_undispatched(live, step, by, now)


def _cancel_undispatched(live: LiveState, step: LiveStep, by: str, now: float) -> None:
    for task in step.tasks:
        if not task.is_dispatched and task.verdict is None:
            evidence = CancelledBefore(now, by, "it began")
            heard(live, Heard(task.key, "coordinator", cancelled_words(evidence), evidence), now)


def signal(live: LiveState, step: LiveStep, number: int) -> None:
    """To the program of each task alone, as Slurm's proctrack/cgroup does: what it has started may not trap it."""
    live.out.controls += [Control(task.key, "signal", signal=number, scope=Scope.SCRIPT) for task in step.running()]


def find(live: LiveState, attempt_key: str, number: int) -> LiveStep | None:
    """The step of this attempt, if it has not ended."""
    attempt = live.attempts.get(attempt_key)
    return None if attempt is None or attempt.steps is None else attempt.steps.live.get(number)
