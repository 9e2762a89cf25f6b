"""Steps of jobs on a cluster, which runs them itself: a step is known from the first record that a task of it left.

Only records tell of such tasks. Where none says how many tasks a step has, it is open until its job is over: tasks are
added as they are heard of, and its exit is the worst of those that were seen. Tasks whose records have not come by
then are lost; of a step without any record the controller's DerivedExitCode is all that is known.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from aver.coordinator.state.live import LiveAttempt
from aver.coordinator.state.steps import LiveStep, LiveTask
from aver.engines.api import Heard
from aver.judge.scheduler import COORDINATOR, ENDING, QUEUE, judge_unseen_step
from aver.model.events import StepStarted
from aver.model.evidence import QueueSaid, WitnessRecord, WitnessVanished
from aver.model.exit import ExitStatus
from aver.model.job import StepSpec
from aver.model.states import State

if TYPE_CHECKING:
    from aver.coordinator.state.machine import Driver

MOST_TASKS = 1_000_000


class ClusterSteps:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._seen: dict[str, dict[int, bool]] = {}  # by attempt: steps with records, and whether one of them failed

    def heard(
        self, attempt: LiveAttempt, number: int, task: int, record: WitnessRecord, one: Heard, now: float
    ) -> None:
        """A task of the attempt's step has left its record."""
        seen = self._seen.setdefault(attempt.key, {})
        seen[number] = seen.get(number, False) or record.exit is None or not record.exit.is_success
        steps = self._driver.steps
        if steps.has_ended(attempt.key, number):
            return  # told again, after a restart
        tasks = min(max(record.step_tasks or 1, task + 1), MOST_TASKS)
        step = steps.find(attempt.key, number)
        if step is None:
            program = os.path.basename(record.name) or "srun"
            spec = StepSpec(program, (record.name or "?",), "", tasks, is_open=record.step_tasks is None)
            step = self._watch(attempt, number, spec, now)
        elif step.is_open:
            self._widen(step, tasks, record.step_tasks is not None, now)
        if task < len(step.tasks):
            self._take(step, step.tasks[task], record, one, now)

    def over(self, attempt: LiveAttempt, now: float) -> None:
        """Its job is over: no more is to come of its steps."""
        self._tell_unseen(attempt, now)
        steps = self._driver.steps
        for step in list(steps.live_of(attempt.key)):
            step.is_open = False
            if step.is_ended:
                steps.end(step, now)
            for task in step.tasks:
                if task.verdict is None:
                    text = "its job is over, and its witness left no record"
                    steps.heard(Heard(task.key, COORDINATOR, text, WitnessVanished(now)), now)

    def _watch(self, attempt: LiveAttempt, number: int, spec: StepSpec, now: float) -> LiveStep:
        key = f"{attempt.key}.s{number}"
        tasks = [LiveTask(rank, f"{key}.t{rank}", is_dispatched=True) for rank in range(spec.tasks)]
        step = LiveStep(attempt, number, key, spec, tasks, is_open=spec.is_open)
        self._driver.emit(StepStarted(now, attempt.run, attempt.job, attempt.attempt, number, key, spec))
        self._driver.steps.restore(step)
        return step

    def _widen(self, step: LiveStep, tasks: int, is_all: bool, now: float) -> None:
        """It has at least so many tasks; `is_all`: just so many."""
        steps = self._driver.steps
        for rank in range(len(step.tasks), tasks):
            steps.add_task(step, LiveTask(rank, f"{step.attempt.key}.s{step.number}.t{rank}", is_dispatched=True))
        if is_all:
            step.is_open = False
            step.spec = replace(step.spec, tasks=len(step.tasks), is_open=False)
            if step.is_ended:  # told again, after a restart
                steps.end(step, now)

    def _take(self, step: LiveStep, task: LiveTask, record: WitnessRecord, one: Heard, now: float) -> None:
        """One that was signalled after another failed was ended because of that."""
        if task.verdict is not None:
            return
        is_signalled = record.exit is not None and record.exit.signal in record.got
        task.because = is_signalled and any(
            other.verdict is not None and other.verdict.state is not State.COMPLETED and not other.because
            for other in step.tasks
        )
        task.is_ended = is_signalled and record.exit is not None and record.exit.signal in ENDING
        self._driver.steps.heard(one, now)

    def _tell_unseen(self, attempt: LiveAttempt, now: float) -> None:
        """A step whose witnesses were killed left no record; the controller still says how the worst one ended: `0:9`.

        How many tasks it had nobody says.
        """
        seen = self._seen.pop(attempt.key, {})
        said = [one.derived for one in attempt.evidence if isinstance(one, QueueSaid) and one.derived]
        if not said or said[-1] == str(ExitStatus()) or any(seen.values()):
            return
        number = next(number for number in range(len(seen) + 1) if number not in seen)
        step = self._watch(attempt, number, StepSpec("srun", ("?",), "", 1, is_open=True), now)
        verdict = judge_unseen_step(said[-1])
        if verdict is not None:
            task = step.tasks[0]
            heard = Heard(task.key, QUEUE, f"DerivedExitCode={said[-1]}", WitnessVanished(now))
            self._driver.steps.end_task(step, task, verdict, heard, now)
