"""Attempts that are planned or run, with their steps and tasks, as the coordinator holds them in memory.

What `fold.apply` writes is made again from the stored events. The phase, the evidence, the descriptors and what is
marked volatile are not stored: after a restart the engines say them again.
"""

from __future__ import annotations

from collections import deque

from aver.engines.api import Capabilities, Heard
from aver.judge.step import Task, task_end
from aver.model.evidence import Evidence, TaskCause, Verdict
from aver.model.job import Request, StepSpec
from aver.model.record import Mutable, Record, field
from aver.model.states import State


class Planned(Record):
    """Its intent is written, or on its way to the disk; it waits for room."""

    is_durable: bool


class Ready(Record):
    """The attempt has room, and waits for its intent or its GPUs to be durable."""

    is_durable: bool


class Dispatched(Record):
    """Its engine has it, or may have it; nobody has seen it run."""


class Running(Record):
    """Its engine says that it has begun. `since` is None where nobody said when."""

    since: float | None


class Parked(Record):
    """Its script has ended, with this evidence and verdict; its steps have not."""

    heard: Heard
    verdict: Verdict


class Reading(Record):
    """The attempt has completed, with this evidence and verdict; the jobs that it generated are being read."""

    heard: Heard
    verdict: Verdict


class Ended(Record):
    verdict: Verdict


Phase = Planned | Ready | Dispatched | Running | Parked | Reading | Ended

PLANNED, PLANNED_DURABLE = Planned(False), Planned(True)
READY, READY_DURABLE = Ready(False), Ready(True)
DISPATCHED = Dispatched()


class LiveTask(Mutable):
    number: int
    key: str
    verdict: Verdict | None = None
    because: bool = False  # it is ended since another task failed
    ended_at: float | None = None
    cause: TaskCause = TaskCause()
    is_dispatched: bool = False  # volatile, as all below
    is_still: bool | None = None  # as of its attempt
    evidence: list[Evidence] = field(default_factory=list)

    def as_task(self) -> Task:
        """For the fold and the summary."""
        return Task(self.number, task_end(self.verdict, self.cause), self.ended_at, self.because)


class LiveStep(Mutable):
    attempt: LiveAttempt
    number: int
    token: str
    spec: StepSpec
    tasks: list[LiveTask]
    first_end_at: float | None = None  # of its tasks
    kill_asked: bool = False  # by a person, or by --wait: KILL at once
    limit_asked: bool = False  # a person changed its time limit
    state: State | None = None  # once it has ended
    srun_code: int | None = None
    is_durable: bool = False  # volatile, as all below
    is_open: bool = False  # on a cluster: there may be more tasks than those that were heard of
    env_file: str | None = None
    streams: tuple[int, ...] = ()
    cpus: int = 0  # what it takes of the job's
    echoes: dict[int, float] = field(default_factory=dict)  # signals its srun got too, and until when it passes them on

    @property
    def is_ended(self) -> bool:
        return not self.is_open and all(task.verdict is not None for task in self.tasks)

    def running(self) -> list[LiveTask]:
        """Tasks that the engine has and that have not ended."""
        return [task for task in self.tasks if task.is_dispatched and task.verdict is None]

    def request(self) -> Request:
        mem_bytes = self.spec.mem_bytes if self.spec.mem_bytes is not None else self.attempt.request.mem_bytes
        return Request(self.spec.cpus_per_task, 0, mem_bytes, self.spec.time_s)


class StepTable(Mutable):
    """The steps of one attempt."""

    live: dict[int, LiveStep] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)  # with a task that did not complete
    warnings: list[str] = field(default_factory=list)  # of those that have ended, each with its step
    out_of_memory: set[int] = field(default_factory=set)
    is_warned: bool = False  # a task got the job's warning
    next_number: int = 0
    waiting: deque[LiveStep] = field(default_factory=deque)  # volatile: for CPUs of the job


class LiveAttempt(Mutable):
    """An attempt that is planned or runs."""

    run: int
    job: int  # its number
    index: int  # its place in the run
    attempt: int
    key: str
    request: Request
    engine: str
    can: Capabilities  # its engine's
    goes_on_from: str = ""  # the attempt before it, of which the cluster made it by itself
    state: State = State.PENDING
    shown_reason: str = ""  # the last one that its engine gave
    started_at: float | None = None
    node: str = ""
    gpus: tuple[int, ...] = ()
    has_gpus: bool = False  # which ones is written down
    cancel_asked: bool = False
    kill_asked: bool = False  # with the cancellation: KILL at once
    requeue: str = ""  # a person asked for another attempt: which of `fold.REQUEUES`
    suspend_asked: bool | None = None  # the last request: suspend, or resume; None without any
    limit_asked: bool = False  # a person changed its time limit
    steps: StepTable | None = None
    phase: Phase = PLANNED  # volatile, as all below
    is_behind: bool = False  # its engine has it, to begin when one of its lane has ended; nobody has seen it begin
    evidence: list[Evidence] = field(default_factory=list)
    due_s: float | None = None  # by the monotonic clock: when its limit passes, as its witness says
    is_over_time: bool = False  # its witness is ending it because of its limit
    is_still: bool | None = None  # what its witness said since the last request: all are stopped, or go on
    held_text: str = ""  # the sentence that came with `shown_reason`, where it was held back
    streams: tuple[int, ...] = ()  # descriptors for its standard streams, where its submitter hands them over

    @property
    def has_room(self) -> bool:
        return not isinstance(self.phase, Planned)

    @property
    def is_dispatched(self) -> bool:
        """Its engine has it, or may have it."""
        return not isinstance(self.phase, (Planned, Ready))

    @property
    def waits_to_start(self) -> bool:
        """Whether the attempt has room, and waits only for something to be durable."""
        return isinstance(self.phase, Ready)

    @property
    def is_parked(self) -> bool:
        """Its script has ended, and its verdict waits: for its steps, or for the jobs that it generated."""
        return isinstance(self.phase, (Parked, Reading))

    @property
    def is_suspended(self) -> bool:
        return self.state is State.SUSPENDED

    @property
    def is_busy(self) -> bool:
        """Whether it has steps that have not ended."""
        return self.steps is not None and bool(self.steps.live or self.steps.waiting)

    def ask_to_move(self, is_to_stop: bool) -> None:
        """Note that its processes are to stop or to go on: its witnesses are to answer that."""
        self.suspend_asked = is_to_stop
        self.is_still = None
        for step in self.live_steps():
            for task in step.tasks:
                task.is_still = None

    def live_steps(self) -> list[LiveStep]:
        return [] if self.steps is None else list(self.steps.live.values())

    def step_table(self) -> StepTable:
        if self.steps is None:
            self.steps = StepTable()
        return self.steps

    def task_keys(self) -> list[str]:
        """The keys of tasks that the engine has."""
        return [task.key for step in self.live_steps() for task in step.running()]

    def running_keys(self) -> list[str]:
        """The keys of the attempt and of its steps' tasks: all that is to be reached when the job is meant."""
        return [self.key, *self.task_keys()]
