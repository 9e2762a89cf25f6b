"""Steps of running jobs: one `srun` each, one witness per task. The design is `docs/design/steps.md`.

As the driver: no sockets, no disk, no clock. A task is handed to the engine after its step's intent is
durable; each task's end is an event; the last one folds the step.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aver.coordinator.state.live import LiveAttempt
from aver.engines.api import Control, Heard
from aver.errors import UsageError
from aver.judge.step import JudgedTask, Task, TaskRules, judge_step, judge_task, task_cause, task_end
from aver.model.events import Event, PersonAsked, StepEnded, StepStarted, TaskEnded, Usage
from aver.model.evidence import (
    CancelledBefore,
    Evidence,
    LimitMoved,
    LimitPassed,
    TaskCause,
    Verdict,
    WitnessRecord,
    WitnessStart,
)
from aver.model.job import Request, StepSpec
from aver.model.slurm_names import STEP_CANCEL
from aver.model.states import State
from aver.spec.patterns import names_task

if TYPE_CHECKING:
    from aver.coordinator.state.machine import Driver

KILL = 9


@dataclass(slots=True)
class LiveTask:
    number: int
    key: str
    evidence: list[Evidence] = field(default_factory=list)
    verdict: Verdict | None = None
    is_dispatched: bool = False
    because: bool = False
    is_ended: bool = False  # by the scheduler: its witness was sent the signal of which it died
    ended_at: float | None = None
    cause: TaskCause = TaskCause()

    def as_task(self) -> Task:
        """For the fold and the summary."""
        return Task(self.number, task_end(self.evidence, self.verdict), self.ended_at, self.because)


@dataclass(slots=True)
class LiveStep:
    attempt: LiveAttempt
    number: int
    token: str
    spec: StepSpec
    tasks: list[LiveTask]
    env_file: str | None = None
    streams: tuple[int, ...] = ()
    is_durable: bool = False
    cpus: int = 0  # what it takes of the job's
    state: State | None = None  # once it has ended
    srun_code: int | None = None
    is_open: bool = False  # on a cluster: there may be more tasks than those that were heard of

    @property
    def is_ended(self) -> bool:
        return not self.is_open and all(task.verdict is not None for task in self.tasks)

    def request(self) -> Request:
        mem_bytes = self.spec.mem_bytes if self.spec.mem_bytes is not None else self.attempt.request.mem_bytes
        return Request(self.spec.cpus_per_task, 0, mem_bytes, self.spec.time_s)


class Steps:
    """All steps of all live attempts."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._by_key: dict[str, tuple[LiveStep, LiveTask]] = {}
        self._by_token: dict[str, LiveStep] = {}  # ended ones too, while their attempt lives: its srun may come back
        self._of: dict[str, dict[int, LiveStep]] = {}  # by the attempt's key
        self._waiting: dict[str, deque[LiveStep]] = {}
        self._numbers: dict[str, int] = {}
        self._ended: dict[str, set[int]] = {}
        self.starts: list[tuple[LiveStep, LiveTask]] = []  # for the loop: hand these to the engine

    # ---- beginning ----------------------------------------------------------------------------

    def begin(self, key: str, token: str, spec: StepSpec, streams: tuple[int, ...], now: float) -> LiveStep:
        """Take a step of the attempt with this key; the same token is the same step. UsageError says why not."""
        known = self._by_token.get(token)
        if known is not None and known.state is None:
            if not known.streams and any(not task.is_dispatched and task.verdict is None for task in known.tasks):
                known.streams = streams
                self._dispatch(known, now)
            return known
        attempt = self._driver.attempts.get(key)
        if attempt is None or not attempt.is_dispatched or attempt.parked is not None or attempt.is_over_time:
            raise UsageError("Unable to create step: the job is not running")
        allowed = self._driver.allowed_cpus(attempt)
        wanted = spec.tasks * spec.cpus_per_task
        if wanted > allowed and not spec.is_overlapping:
            raise UsageError(f"Unable to create step for job {attempt.job}: More processors requested than permitted")
        of_job = {(resource, soft) for resource, soft, _ in self._driver.runs[attempt.run].submission.origin.limits}
        spec = replace(spec, limits=tuple(limit for limit in spec.limits if limit not in of_job))
        number = self._numbers.get(key, 0)
        self._numbers[key] = number + 1
        tasks = [LiveTask(rank, f"{key}.s{number}.t{rank}") for rank in range(spec.tasks)]
        cpus = 0 if spec.is_overlapping else wanted if spec.is_exact else allowed
        step = LiveStep(attempt, number, token, spec, tasks, streams=streams, cpus=cpus)
        self._by_token[token] = step
        self._waiting.setdefault(key, deque()).append(step)
        self._admit(key, now)
        return step

    def is_waiting(self, step: LiveStep) -> bool:
        """Other steps of its job have the cpus."""
        return step in self._waiting.get(step.attempt.key, ())

    @property
    def has_waiting(self) -> bool:
        return any(self._waiting.values())

    def abandon(self, key: str, number: int, now: float) -> None:
        """Its srun is gone: a step that has not begun never does. One that runs is not ended by that."""
        waiting = self._waiting.get(key, deque())
        for step in [step for step in waiting if step.number == number]:
            waiting.remove(step)
            self._by_token.pop(step.token, None)
            _close_streams(step)
            self._admit(key, now)
        live = self.find(key, number)
        if live is not None and not live.streams and not any(task.is_dispatched for task in live.tasks):
            self.cancel(live, "the end of its srun", now)

    def _admit(self, key: str, now: float) -> None:
        """Begin waiting steps for which the job has cpus, in order."""
        waiting = self._waiting.get(key)
        while waiting:
            step = waiting[0]
            if step.attempt.is_over_time:
                return
            used = sum(other.cpus for other in self._of.get(key, {}).values())
            if step.cpus and used + step.cpus > self._driver.allowed_cpus(step.attempt):
                return
            waiting.popleft()
            self._add(step)
            attempt = step.attempt
            self._driver.emit(
                StepStarted(now, attempt.run, attempt.job, attempt.attempt, step.number, step.token, step.spec)
            )

    def _add(self, step: LiveStep) -> None:
        self._by_token[step.token] = step
        self._of.setdefault(step.attempt.key, {})[step.number] = step
        for task in step.tasks:
            self._by_key[task.key] = (step, task)

    def add_task(self, step: LiveStep, task: LiveTask) -> None:
        """One more than was known."""
        step.tasks.append(task)
        self._by_key[task.key] = (step, task)

    def restore(self, step: LiveStep) -> None:
        """A step that has not ended, and of which the intent needs no commit: of the store, or of a cluster."""
        step.is_durable = True
        self._numbers[step.attempt.key] = max(step.number + 1, self._numbers.get(step.attempt.key, 0))
        self._add(step)

    def has_ended(self, key: str, number: int) -> bool:
        return number in self._ended.get(key, ())

    def note_end(self, key: str, number: int) -> None:
        self._ended.setdefault(key, set()).add(number)

    def note_number(self, key: str, number: int) -> None:
        """Steps up to this one have been."""
        self._numbers[key] = max(number + 1, self._numbers.get(key, 0))

    def committed(self, events: Sequence[Event], now: float) -> None:
        """Hand over the tasks of steps whose intent is durable now."""
        for event in events:
            if isinstance(event, StepStarted):
                step = self._by_token.get(event.token)
                if step is not None:
                    step.is_durable = True
                    self._dispatch(step, now)

    def _dispatch(self, step: LiveStep, now: float) -> None:
        if not step.is_durable or (needs_streams(step.spec) and not step.streams) or step.attempt.is_suspended:
            return
        for task in step.tasks:
            if not task.is_dispatched and task.verdict is None:
                task.is_dispatched = True
                self.starts.append((step, task))

    def resume(self, attempt: LiveAttempt, now: float) -> None:
        """The job goes on: so do steps that were asked for meanwhile."""
        for step in list(self.live_of(attempt.key)):
            self._dispatch(step, now)

    def move_limit(self, attempt: LiveAttempt, due_s: float | None) -> None:
        """The job's limit passes then: the tasks' witnesses go by it, should nobody be here to end them."""
        attempt.due_s = due_s
        controls = [Control(key, "job_limit", due_s=due_s) for key in self.running_keys(attempt.key)]
        self._driver.out.controls += controls

    # ---- ending -------------------------------------------------------------------------------

    def heard(self, one: Heard, now: float) -> bool:
        """Take evidence of a task; False if no live step has it."""
        found = self._by_key.get(one.key)
        if found is None:
            return False
        step, task = found
        task.evidence.append(one.evidence)
        if task.verdict is not None or isinstance(one.evidence, (WitnessStart, LimitMoved, LimitPassed)):
            return True
        verdict = judge_task(task.evidence, TaskRules(task.is_ended))
        if verdict is not None:
            self.end_task(step, task, verdict, one, now)
        return True

    def end_task(self, step: LiveStep, task: LiveTask, verdict: Verdict, one: Heard, now: float) -> None:
        record = one.evidence if isinstance(one.evidence, WitnessRecord) else None
        task.verdict = verdict
        task.ended_at = now if record is None else record.started_at + record.elapsed_s
        usage = None
        if record is not None:
            task.cause = task_cause(record)
            peak = record.peak_bytes if record.peak_bytes is not None else record.maxrss_bytes
            usage = Usage(
                record.started_at,
                record.elapsed_s,
                record.user_s,
                record.sys_s,
                peak,
                step.attempt.node or self._driver.identity.host,
            )
        attempt = step.attempt
        self._driver.emit(
            TaskEnded(
                now, attempt.run, attempt.job, attempt.attempt, step.number, task.number, one.said, verdict, usage,
                task.because, task.cause,
            )
        )  # fmt: skip
        if verdict.state is not State.COMPLETED and step.spec.kill_on_bad_exit:
            self.end_others(step)
        if step.spec.wait_s is not None and not step.is_ended:
            self._driver.at(now + step.spec.wait_s, f"wait {step.token}", attempt.job)
        if step.is_ended:
            self.end(step, now)

    def end_others(self, step: LiveStep, signal: int = 0) -> None:
        """One task's end is the end of the step: mark and end those that still run, with KILL at once if so."""
        for task in step.tasks:
            if task.verdict is None and not task.because:
                task.because = True
                self._driver.out.controls.append(Control(task.key, "cancel", signal=signal))

    def wait_is_over(self, kind: str) -> None:
        """The time that `--wait` gives after the first task's end has passed."""
        step = self._by_token.get(kind.partition(" ")[2])
        if step is not None:
            self.end_others(step, KILL)

    def end(self, step: LiveStep, now: float) -> None:
        judged = judge_step([JudgedTask(task.as_task(), task.verdict) for task in step.tasks], step.spec.is_open)
        attempt = step.attempt
        self._driver.emit(
            StepEnded(
                now, attempt.run, attempt.job, attempt.attempt, step.number, judged.verdict, judged.derived,
                judged.first_failed, judged.srun_code,
            )
        )  # fmt: skip
        step.state, step.srun_code = judged.verdict.state, judged.srun_code
        self.note_end(attempt.key, step.number)
        for task in step.tasks:
            self._by_key.pop(task.key, None)
        live = self._of.get(attempt.key, {})
        live.pop(step.number, None)
        self._admit(attempt.key, now)
        if not self.is_busy(attempt.key):
            self._of.pop(attempt.key, None)
            self._driver.ending.unpark(attempt, now)

    def is_busy(self, key: str) -> bool:
        """Whether the attempt has steps that have not ended."""
        return bool(self._of.get(key)) or bool(self._waiting.get(key))

    def end_all(self, attempt: LiveAttempt, now: float) -> None:
        """The script has ended, or its job is cancelled: so are its steps."""
        for step in self._waiting.pop(attempt.key, ()):
            self._by_token.pop(step.token, None)  # never begun: its srun is of a job that is over
        self.end_begun(attempt, now)

    def end_begun(self, attempt: LiveAttempt, now: float) -> None:
        """End the steps that have begun; those that wait never begin in a job that is over its time limit."""
        by = "its job's time limit" if attempt.is_over_time else "the end of its job"
        for step in list(self._of.get(attempt.key, {}).values()):
            self.cancel(step, by, now)

    def cancel(self, step: LiveStep, by: str, now: float) -> None:
        """End the step's tasks. Those that were never handed over never run."""
        for task in step.tasks:
            if task.verdict is not None:
                continue
            if task.is_dispatched:
                verb = "time_out" if step.attempt.is_over_time else "cancel"
                self._driver.out.controls.append(Control(task.key, verb))
            else:
                said = f"cancelled by {by} before it began"
                self.heard(Heard(task.key, "coordinator", said, CancelledBefore(now, by)), now)

    def kill(self, step: LiveStep, by: str, now: float) -> None:
        """A person cancels the step: KILL at once, as Slurm does, after the request is durable."""
        attempt = step.attempt
        asked = PersonAsked(now, attempt.run, attempt.job, by, STEP_CANCEL, str(step.number))
        self._driver.emit(asked)
        running = [task.key for task in step.tasks if task.is_dispatched and task.verdict is None]
        self._driver.after_commit += [(asked, Control(key, "cancel", signal=KILL)) for key in running]
        for task in step.tasks:
            if not task.is_dispatched and task.verdict is None:
                said = f"cancelled by {by} before it began"
                self.heard(Heard(task.key, "coordinator", said, CancelledBefore(now, by)), now)

    def signal(self, step: LiveStep, number: int) -> None:
        for task in step.tasks:
            if task.is_dispatched and task.verdict is None:
                self._driver.out.controls.append(Control(task.key, "signal", signal=number))

    def rejected(self, task: LiveTask, evidence: Evidence, text: str, now: float) -> None:
        """The engine refused it."""
        self.heard(Heard(task.key, "engine", text, evidence), now)

    # ---- looking ------------------------------------------------------------------------------

    def find(self, attempt_key: str, number: int) -> LiveStep | None:
        return self._of.get(attempt_key, {}).get(number)

    def by_token(self, token: str) -> LiveStep | None:
        return self._by_token.get(token)

    def forget(self, attempt_key: str) -> None:
        """The attempt is over: nobody asks for its steps any more."""
        self._numbers.pop(attempt_key, None)
        self._ended.pop(attempt_key, None)
        for token in [token for token, step in self._by_token.items() if step.attempt.key == attempt_key]:
            del self._by_token[token]

    def live_of(self, attempt_key: str) -> Iterator[LiveStep]:
        yield from self._of.get(attempt_key, {}).values()

    def running_keys(self, attempt_key: str) -> list[str]:
        """The keys of tasks that the engine has."""
        return [
            task.key
            for step in self.live_of(attempt_key)
            for task in step.tasks
            if task.is_dispatched and task.verdict is None
        ]

    def live_tasks(self) -> list[tuple[LiveStep, LiveTask]]:
        return list(self._by_key.values())


def is_shared(spec: StepSpec, pattern: str | None) -> bool:
    """Whether all tasks of a step write to the one file of this pattern: srun opens it, once for all of them."""
    return spec.tasks > 1 and pattern is not None and pattern != os.devnull and not names_task(pattern)


def needs_streams(spec: StepSpec) -> bool:
    """Whether the tasks need descriptors of srun."""
    return spec.stdin is None or spec.stdout is None or is_shared(spec, spec.stdout) or is_shared(spec, spec.stderr)


def _close_streams(step: LiveStep) -> None:
    for descriptor in step.streams:
        os.close(descriptor)
    step.streams = ()
