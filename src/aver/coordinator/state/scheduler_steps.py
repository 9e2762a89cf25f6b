"""Steps of jobs on a cluster, which runs them itself: a step is known from the first record that a task of it left.

Only records tell of such tasks. Where none says how many tasks a step has, it is open until its job is over: tasks are
added as they are heard of, and its exit is the worst of those that were seen. Tasks whose records have not come by
then are lost; of a step without any record the controller's DerivedExitCode is all that is known.
"""

from __future__ import annotations

from aver.coordinator.state import steps
from aver.coordinator.state.attempt import LiveAttempt, LiveStep, LiveTask
from aver.coordinator.state.fold import emit, widen
from aver.coordinator.state.live import LiveState
from aver.engines.api import Heard
from aver.judge.scheduler import COORDINATOR, ENDING, QUEUE, judge_unseen_step
from aver.judge.step import TaskRules
from aver.model.events import StepStarted
from aver.model.evidence import QueueSaid, WitnessRecord, WitnessVanished
from aver.model.exit import ExitStatus
from aver.model.job import StepSpec
from aver.model.record import replace
from aver.model.states import State

MOST_TASKS = 1_000_000


def heard(
    live: LiveState, attempt: LiveAttempt, number: int, task: int, record: WitnessRecord, one: Heard, now: float
) -> None:
    """A task of the attempt's step has left its record."""
    table = attempt.step_table()
    if number in table.ended:
        return  # told again, after a restart
    tasks = min(max(record.step_tasks or 1, task + 1), MOST_TASKS)
    step = table.live.get(number)
    if step is None:
        program = record.name.rpartition("/")[2] or "srun"
        spec = StepSpec(program, (record.name or "?",), "", tasks, is_open=record.step_tasks is None)
        step = _watch(live, attempt, number, spec, now)
    elif step.is_open:
        _widen(live, step, tasks, record.step_tasks is not None, now)
    if task < len(step.tasks):
        _take(live, step, step.tasks[task], record, one, now)


def over(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """Its job is over: no more is to come of its steps."""
    _tell_unseen(live, attempt, now)
    for step in attempt.live_steps():
        step.is_open = False
        if step.is_ended:
            steps.end(live, step, now)
        for task in step.tasks:
            if task.verdict is None:
                text = "its job is over, and its witness left no record"
                steps.heard(live, Heard(task.key, COORDINATOR, text, WitnessVanished(now)), now)


def _watch(live: LiveState, attempt: LiveAttempt, number: int, spec: StepSpec, now: float) -> LiveStep:
    key = f"{attempt.key}.s{number}"
    emit(live, StepStarted(now, attempt.run, attempt.job, attempt.attempt, number, key, spec))
    step = attempt.step_table().live[number]
    step.is_durable = True  # nothing of it is handed over
    return step


def _widen(live: LiveState, step: LiveStep, tasks: int, is_all: bool, now: float) -> None:
    """Raise the number of the step's tasks to `tasks`, the final number if `is_all`."""
    widen(live, step, tasks)
    if is_all:
        step.is_open = False
        step.spec = replace(step.spec, tasks=len(step.tasks), is_open=False)
        if step.is_ended:  # told again, after a restart
            steps.end(live, step, now)


def _take(live: LiveState, step: LiveStep, task: LiveTask, record: WitnessRecord, one: Heard, now: float) -> None:
    """A task that was signalled after another failed was ended because of that."""
    if task.verdict is not None:
        return
    is_signalled = record.exit is not None and record.exit.signal in record.got
    because = is_signalled and any(
        other.verdict is not None and other.verdict.state is not State.COMPLETED and not other.because
        for other in step.tasks
    )
    is_ended = is_signalled and record.exit is not None and record.exit.signal in ENDING
    steps.heard(live, one, now, TaskRules(is_ended_by_scheduler=is_ended), because)


def _tell_unseen(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """Witnesses that were killed left no record; the controller still says how the worst step ended: `0:9`.

    If a known step misses tasks, it is one of these: the only one has that end, of several nobody knows which. Else
    there was a step without any record, and how many tasks it had nobody says.
    """
    said = [one.derived for one in attempt.evidence if isinstance(one, QueueSaid) and one.derived]
    table = attempt.step_table()
    tasks = [(step, task) for step in attempt.live_steps() for task in step.tasks]
    is_explained = any(task.verdict is not None and task.verdict.state is not State.COMPLETED for _, task in tasks)
    if not said or said[-1] == str(ExitStatus()) or table.failed or is_explained:
        return
    missing = [(step, task) for step, task in tasks if task.verdict is None]
    if not missing:
        seen = table.ended | set(table.live)
        number = next(number for number in range(len(seen) + 1) if number not in seen)
        step = _watch(live, attempt, number, StepSpec("srun", ("?",), "", 1, is_open=True), now)
        missing = [(step, step.tasks[0])]
    verdict = judge_unseen_step(said[-1])
    if verdict is not None and len(missing) == 1:
        ((step, task),) = missing
        one = Heard(task.key, QUEUE, f"DerivedExitCode={said[-1]}", WitnessVanished(now))
        steps.end_task(live, step, task, verdict, one, now, False)
