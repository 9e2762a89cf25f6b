"""A job's time limit and its steps, in the state machine: its script's witness owns it, the steps follow it."""

from __future__ import annotations

import pytest

from aver.coordinator.order.order import task_order
from aver.coordinator.requests import suspend
from aver.coordinator.state.attempt import LiveStep, LiveTask
from aver.coordinator.state.live import Identity
from aver.coordinator.state.machine import Machine
from aver.engines.api import Control, Heard, Order
from aver.engines.local.orders import control_frame, run_frame
from aver.engines.registry import capabilities_of
from aver.errors import UsageError
from aver.model.events import Event, Observed
from aver.model.evidence import (
    Act,
    ActKind,
    Evidence,
    LimitMoved,
    LimitPassed,
    Resumed,
    Suspended,
    WitnessRecord,
    WitnessStart,
)
from aver.model.exit import ExitStatus
from aver.model.job import (
    Argv,
    FlowSpec,
    JobSpec,
    Origin,
    Request,
    Scope,
    StepSpec,
    Submission,
    WarningSignal,
)
from aver.model.states import State
from aver.plan.packing import Room

DUE_S = 5060.0
MONOTONIC_S = 5010.0  # 50 s are left


class Job:
    """A running job of two CPUs with a limit of a minute, its store and its engine."""

    def __init__(self, is_heard: bool = True, time_s: int | None = 60, **fields: object) -> None:
        self.machine = Machine(Identity("0123abcd", "b" * 32, "here"), Room.of(2, 0, 1 << 40), 1, capabilities_of)
        self.now = 1000.0
        self.stored: list[Event] = []
        spec = JobSpec("a", Argv(("true",)), request=Request(cpus=2, time_s=time_s), **fields)  # type: ignore[arg-type]
        origin = Origin("tester", 1, "here", "/", 0o22)
        self.run = self.machine.submit(Submission(FlowSpec("flow", (spec,), is_single=True), origin), self.now)
        self.commit()
        self.key = self.machine.by_job[1].key
        if is_heard:
            self.hear(WitnessStart(self.key, 5, 4, self.now, due_s=DUE_S))

    def commit(self) -> None:
        self.machine.schedule(self.now)
        events, self.machine.out.events = self.machine.out.events, []
        self.stored += events
        self.machine.committed(events, self.now)

    def take(self, *said: Evidence) -> None:
        """Hear all of these in one turn of the loop."""
        for evidence in said:
            self.machine.take(Heard(self.key, "witness", "said", evidence), self.now)
        self.machine.advance(self.now)

    def hear(self, evidence: Evidence, key: str = "") -> None:
        self.machine.heard(Heard(key or self.key, "witness", "said", evidence), self.now)

    def begin(self, token: str = "t", **fields: object) -> None:
        spec = StepSpec("step", ("true",), "/", tasks=2, **fields)  # type: ignore[arg-type]
        self.machine.begin_step(self.key, token, spec, (0, 1, 2), self.now)
        self.commit()

    def shown(self) -> list[State]:
        """The states that could be read one after the other."""
        return [event.state for event in self.stored if isinstance(event, Observed)]

    def starts(self) -> list[tuple[LiveStep, LiveTask]]:
        starts, self.machine.out.task_starts = self.machine.out.task_starts, []
        return starts

    def orders(self) -> list[Order]:
        return [task_order(self.run, step, task, "here", 30.0, self.now, MONOTONIC_S) for step, task in self.starts()]

    def controls(self) -> list[tuple[str, str]]:
        """Task and verb."""
        controls, self.machine.out.controls = self.machine.out.controls, []
        return [(control.key.removeprefix(self.key).lstrip("."), control.verb) for control in controls]


def test_a_task_has_its_steps_own_limit_alone() -> None:
    """The job's is told to its witness as what it is: when it passes, by the monotonic clock."""
    job = Job()
    job.begin()
    order = job.orders()[0]
    assert (order.request.time_s, order.job_due_s) == (None, DUE_S)
    assert b"\0D5060000\0" in run_frame(order, None, "w1", 0)
    job.begin("own", time_s=7, is_overlapping=True)
    order = job.orders()[0]
    assert (order.request.time_s, order.job_due_s) == (7, DUE_S)


@pytest.mark.parametrize(
    ("lead_s", "own_s", "is_warned"), [(30, None, True), (50, None, False), (30, 20, False), (30, 55, True)]
)
def test_a_jobs_warning_for_its_steps(lead_s: int, own_s: int | None, is_warned: bool) -> None:
    """A step that begins with 50 s left is warned if that is still to come, and if no limit of its own is first."""
    job = Job(warning=WarningSignal(10, lead_s, Scope.STEPS))
    job.begin(time_s=own_s)
    assert (job.orders()[0].warning is not None) is is_warned


@pytest.mark.parametrize(("left_s", "is_warned"), [(40, True), (20, False)])
def test_a_deadline_warns_a_step_that_is_asked_for_at_once(left_s: int, is_warned: bool) -> None:
    """Its job has no time limit, and its start is not heard yet: its time is what the deadline leaves."""
    job = Job(is_heard=False, time_s=None, warning=WarningSignal(10, 30, Scope.STEPS), deadline_at=1000.0 + left_s)
    job.begin()
    assert (job.orders()[0].warning is not None) is is_warned


def test_the_kill_wait_of_a_job_is_its_steps() -> None:
    """It is not that of the settings, where the job has its own."""
    job = Job(kill_wait_s=3.0)
    job.begin()
    assert job.orders()[0].kill_wait_s == 3.0


def test_steps_are_ended_when_the_jobs_limit_passes() -> None:
    """Those that run; after that none begins, and one that is not handed over never runs."""
    job = Job()
    job.begin()
    assert len(job.starts()) == 2
    job.machine.begin_step(job.key, "waits", StepSpec("step", ("true",), "/"), (0, 1, 2), job.now)
    job.hear(LimitPassed(60.0))
    assert job.controls() == [("s0.t0", "time_out"), ("s0.t1", "time_out")]
    with pytest.raises(UsageError, match="the job is not running"):
        job.begin("late")
    for task in (0, 1):
        job.hear(WitnessRecord("k", 5, ExitStatus(0, 15), job.now, 1.0), f"{job.key}.s0.t{task}")
    job.commit()
    assert job.starts() == []


def test_the_script_ends_at_its_limit_and_says_nothing_before() -> None:
    """Its witness came too late to act: the record says that the limit had passed, and the steps are ended for that."""
    job = Job()
    job.begin()
    job.starts()
    job.hear(WitnessRecord(job.key, 5, ExitStatus(), job.now, 61.0, acts=(Act(ActKind.TIME, 61.0, 0),)))
    assert job.controls() == [("s0.t0", "time_out"), ("s0.t1", "time_out")]
    for task in (0, 1):
        job.hear(WitnessRecord("k", 5, ExitStatus(0, 15), job.now, 1.0), f"{job.key}.s0.t{task}")
    job.commit()
    assert [event.state for event in job.stored if isinstance(event, Observed)][-1] is State.TIMEOUT


def test_a_limit_that_moves_is_told_to_running_tasks() -> None:
    """Also when its witness says it again to a coordinator that has come back."""
    job = Job()
    job.begin()
    job.starts()
    job.hear(LimitMoved(6000.0))
    assert job.controls() == [("s0.t0", "job_limit"), ("s0.t1", "job_limit")]
    assert control_frame(Control("k", "job_limit", due_s=6000.0001)).endswith(b"D6000001\0")
    assert control_frame(Control("k", "job_limit")).endswith(b"\0D\0")
    job.hear(WitnessStart(job.key, 5, 4, job.now, due_s=7000.0))
    assert job.controls() == [("s0.t0", "job_limit"), ("s0.t1", "job_limit")]
    job.begin("next", is_overlapping=True)
    assert job.orders()[0].job_due_s == 7000.0


def test_a_step_of_a_suspended_job_begins_when_that_goes_on() -> None:
    """Its tasks would run while the job's clock stands still."""
    job = Job()
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.begin()
    assert job.starts() == []
    job.hear(Suspended(1.0))
    suspend.resume(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    assert job.starts() == []
    job.hear(Resumed(2.0))
    assert len(job.starts()) == 2


def test_a_job_that_goes_on_before_it_stood_still_begins_its_steps() -> None:
    """A suspension that was taken back is not shown, and holds nothing up."""
    job = Job()
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.begin()
    suspend.resume(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    job.hear(Suspended(1.0))
    assert (job.shown(), job.starts()) == ([State.RUNNING], [])
    job.hear(Resumed(1.0))
    job.commit()
    assert (job.shown(), len(job.starts())) == ([State.RUNNING], 2)


def test_a_job_is_suspended_when_all_of_its_witnesses_say_so() -> None:
    """Of its script and of each task: what is asked for is not what is."""
    job = Job()
    job.begin()
    tasks = [task.key for _, task in job.starts()]
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    assert job.controls() == [("", "suspend"), ("s0.t0", "suspend"), ("s0.t1", "suspend")]
    for key in (tasks[0], job.key):
        job.hear(Suspended(1.0), key)
        job.commit()
        assert job.shown() == [State.RUNNING]
    job.hear(Suspended(1.0), tasks[1])
    job.commit()
    assert job.shown() == [State.RUNNING, State.SUSPENDED]
    suspend.resume(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    for key in (job.key, tasks[1]):
        job.hear(Resumed(2.0), key)
        job.commit()
        assert job.shown() == [State.RUNNING, State.SUSPENDED]
    job.hear(Resumed(2.0), tasks[0])
    job.commit()
    assert job.shown() == [State.RUNNING, State.SUSPENDED, State.RUNNING]


def test_a_task_that_ends_is_not_waited_for() -> None:
    """It was not stopped in time, and nothing of it runs any more."""
    job = Job()
    job.begin()
    tasks = [task.key for _, task in job.starts()]
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.hear(Suspended(1.0))
    job.hear(Suspended(1.0), tasks[0])
    job.hear(WitnessRecord(tasks[1], 9, ExitStatus(0), job.now, 1.0), tasks[1])
    job.commit()
    assert job.shown() == [State.RUNNING, State.SUSPENDED]


def test_a_job_that_is_being_ended_is_not_shown_as_suspended() -> None:
    """Its witness stopped it, and its limit passed before that was heard."""
    job = Job()
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.hear(LimitPassed(60.0))
    job.hear(Suspended(1.0))
    job.commit()
    assert job.shown() == [State.RUNNING]


def test_a_resumption_that_came_before_the_end_is_shown() -> None:
    """The witness said both in one turn: the reply to `aver resume` counts the first."""
    job = Job()
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.hear(Suspended(1.0))
    suspend.resume(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    job.take(Resumed(2.0), WitnessRecord(job.key, 5, ExitStatus(0), job.now, 2.0))
    job.commit()
    assert job.shown() == [State.RUNNING, State.SUSPENDED, State.RUNNING, State.COMPLETED]


def test_a_suspension_that_came_before_the_end_is_shown() -> None:
    """As it was: its processes stood still, and then somebody killed them."""
    job = Job()
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    job.take(Suspended(1.0), WitnessRecord(job.key, 5, ExitStatus(0, 9), job.now, 2.0))
    job.commit()
    assert job.shown() == [State.RUNNING, State.SUSPENDED, State.FAILED]


def test_a_job_that_is_suspended_again_before_it_went_on() -> None:
    """What its witness said before the last request is no answer to it: the job runs until it is stopped again."""
    job = Job()
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.hear(Suspended(1.0))
    suspend.resume(job.machine, job.run, 0, "tester", job.now)
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    assert job.controls()[-2:] == [("", "resume"), ("", "suspend")]
    job.hear(Resumed(2.0))
    job.commit()
    assert job.shown() == [State.RUNNING, State.SUSPENDED, State.RUNNING]
    job.hear(Suspended(3.0))
    job.commit()
    assert job.shown() == [State.RUNNING, State.SUSPENDED, State.RUNNING, State.SUSPENDED]


def test_a_step_that_is_asked_for_before_its_job_goes_on_holds_up_no_other() -> None:
    """Its task was never stopped, and its witness has nothing to say to that."""
    job = Job()
    suspend.suspend(job.machine, job.run, 0, "tester", job.now)
    job.begin("first", is_overlapping=True)
    suspend.resume(job.machine, job.run, 0, "tester", job.now)
    job.commit()
    job.begin("second", is_overlapping=True)
    job.hear(Suspended(1.0))
    job.hear(Resumed(1.0))
    assert [step.token for step, _ in job.starts()] == ["first", "first", "second", "second"]
