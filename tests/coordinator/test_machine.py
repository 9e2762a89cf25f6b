"""The state machine: what is heard and asked comes in, events and orders come out, nothing before it is durable."""

from __future__ import annotations

import pytest

from aver.coordinator.requests import cancel, retry
from aver.coordinator.state.live import Identity
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Heard
from aver.engines.registry import capabilities_of
from aver.model.events import AttemptPlanned, Event, JobMoved, Observed, RunMoved, RunSubmitted, StepEnded
from aver.model.evidence import Act, Refused, WitnessRecord, WitnessStart, WitnessVanished
from aver.model.exit import ExitStatus
from aver.model.job import (
    Argv,
    FlowSpec,
    JobSpec,
    Need,
    Needs,
    Origin,
    Request,
    RetryRule,
    StepSpec,
    Submission,
)
from aver.model.states import State
from aver.plan.packing import Room

ORIGIN = Origin("tester", 1, "here", "/", 0o22)
TRUE = Argv(("true",))


class Turn:
    """A machine with a store that commits when told to, and an engine that does as told."""

    def __init__(self, cpus: int = 2) -> None:
        self.machine = Machine(Identity("0123abcd", "b" * 32, "here"), Room.of(cpus, 0, 1 << 40), 1, capabilities_of)
        self.now = 1000.0
        self.stored: list[Event] = []

    def submit(self, *jobs: JobSpec, single: bool = False) -> LiveRun:
        return self.machine.submit(Submission(FlowSpec("flow", jobs, is_single=single), ORIGIN), self.now)

    def commit(self) -> list[Event]:
        """Commit what there is, and return it."""
        self.machine.schedule(self.now)
        events, self.machine.out.events = self.machine.out.events, []
        self.stored += events
        self.machine.committed(events, self.now)
        return events

    def started(self) -> list[str]:
        """The names of jobs that were handed to the engine since the last look."""
        starts, self.machine.out.starts = self.machine.out.starts, []
        return [self.machine.runs[one.run].name(one.index) for one in starts]

    def key(self, job: int) -> str:
        return self.machine.by_job[job].key

    def hear_start(self, job: int) -> None:
        key = self.key(job)
        self.machine.heard(Heard(key, "witness", "start", WitnessStart(key, 5, 4, self.now)), self.now)

    def hear_end(self, job: int, exit_status: ExitStatus = ExitStatus()) -> None:
        key = self.key(job)
        record = WitnessRecord(key, 5, exit_status, self.now, 1.0)
        self.machine.heard(Heard(key, "witness", "end", record), self.now)

    def run_to_end(self, job: int, exit_status: ExitStatus = ExitStatus()) -> None:
        self.hear_start(job)
        self.hear_end(job, exit_status)

    def state(self, job: int) -> State | None:
        """The job's state as the stored events have it."""
        state = None
        for event in self.stored:
            if isinstance(event, JobMoved) and event.job == job:
                state = event.state
            elif isinstance(event, Observed) and event.job == job:
                state = event.job_state or event.state
        return state


def job(name: str, *needs: str, **fields: object) -> JobSpec:
    wanted = Needs(tuple(Need(one) for one in needs))
    return JobSpec(name, TRUE, needs=wanted, **fields)  # type: ignore[arg-type]


def test_nothing_is_started_before_its_intent_is_durable() -> None:
    """The order goes out after the commit that holds the attempt's key."""
    turn = Turn()
    turn.submit(job("a"), single=True)
    turn.machine.schedule(turn.now)
    assert turn.started() == []
    events = turn.commit()
    assert [type(event) for event in events] == [RunSubmitted, AttemptPlanned]
    assert turn.started() == ["a"]


def test_intents_of_the_next_jobs_are_durable_ahead() -> None:
    """When a slot becomes free, the next job starts at once, with no commit in between."""
    turn = Turn(cpus=1)
    turn.submit(job("a"), job("b"))
    turn.commit()
    assert turn.started() == ["a"]
    turn.run_to_end(2)
    turn.machine.schedule(turn.now)
    assert turn.started() == ["b"]


def test_a_single_job_and_its_run_have_one_number() -> None:
    """Runs and jobs share one counter."""
    turn = Turn()
    assert turn.submit(job("a"), single=True).job_number(0) == 1
    flow = turn.submit(job("a"), job("b"))
    assert (flow.number, flow.job_number(0), flow.job_number(1)) == (2, 3, 4)
    assert turn.submit(job("a"), single=True).number == 5


def test_cancelling_a_pending_job_never_starts_it() -> None:
    """Also when its intent is on its way to the disk."""
    turn = Turn(cpus=1)
    run = turn.submit(job("a"), job("b"))
    turn.machine.schedule(turn.now)
    assert cancel.cancel(turn.machine, run, 0, "me", turn.now) == "cancelled"
    turn.commit()
    turn.commit()
    assert turn.started() == ["b"]
    assert turn.state(2) is State.CANCELLED
    assert cancel.cancel(turn.machine, run, 0, "me", turn.now) == "already CANCELLED"


def test_a_running_job_is_cancelled_after_the_request_is_durable() -> None:
    """Who asked is written down first; then the witness is told."""
    turn = Turn()
    run = turn.submit(job("a"), single=True)
    turn.commit()
    turn.hear_start(1)
    assert cancel.cancel(turn.machine, run, 0, "me", turn.now) == "cancelling"
    assert turn.machine.out.controls == []
    turn.commit()
    assert [(control.verb, control.key) for control in turn.machine.out.controls] == [("cancel", turn.key(1))]


def test_a_failed_need_skips_the_chain_and_settles_the_run() -> None:
    """One commit holds the verdict, the skips and the run's end."""
    turn = Turn()
    turn.submit(job("a"), job("b", "a"), job("c", "b"))
    turn.commit()
    turn.run_to_end(2, ExitStatus(code=3))
    events = turn.commit()
    assert [turn.state(number) for number in (2, 3, 4)] == [State.FAILED, State.SKIPPED, State.SKIPPED]
    assert [event.state for event in events if isinstance(event, RunMoved)] == [State.RUNNING, State.FAILED]


def test_a_retry_that_is_due_skips_nobody() -> None:
    """The attempt keeps its verdict, the job is PENDING, and its dependents wait."""
    turn = Turn()
    retry = RetryRule(max=1, states=(State.FAILED,), backoff_s=5.0)
    turn.submit(job("a", retry=retry), job("b", "a"))
    turn.commit()
    turn.run_to_end(2, ExitStatus(code=1))
    turn.commit()
    assert turn.state(2) is State.PENDING
    assert turn.started() == ["a"]
    turn.machine.tick(turn.now + 4)
    turn.commit()
    assert turn.started() == []
    turn.now += 6
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.started() == ["a"]
    turn.run_to_end(2)
    turn.commit()
    assert turn.state(2) is State.COMPLETED
    assert turn.started() == ["b"]


@pytest.mark.parametrize("back_s", [60.0, 400 * 86400.0])
def test_a_retry_waits_its_time_when_the_clock_is_set_back(back_s: float) -> None:
    """It was planned by a clock that was ahead: it waits for its back-off, and not until that time comes again."""
    turn = Turn()
    turn.submit(job("a", retry=RetryRule(max=1, states=(State.FAILED,), backoff_s=5.0)), single=True)
    turn.commit()
    turn.run_to_end(1, ExitStatus(code=1))
    turn.commit()
    assert turn.started() == ["a"]
    turn.machine.tick(turn.now)
    turn.now -= back_s
    turn.machine.tick(turn.now)
    turn.machine.tick(turn.now + 4)
    turn.commit()
    assert turn.started() == []
    turn.now += 6
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.started() == ["a"]
    turn.run_to_end(1)
    turn.commit()
    assert turn.state(1) is State.COMPLETED


def test_reports_of_older_attempts_change_nothing() -> None:
    """A key that is not live is stale."""
    turn = Turn()
    turn.submit(job("a", retry=RetryRule(max=1, states=(State.FAILED,))), single=True)
    turn.commit()
    old = turn.key(1)
    turn.run_to_end(1, ExitStatus(code=1))
    record = WitnessRecord(old, 5, ExitStatus(), turn.now, 1.0)
    assert not turn.machine.heard(Heard(old, "witness", "end", record), turn.now)


def test_a_vanished_witness_is_unverified_and_settles_the_run() -> None:
    """Never COMPLETED; exit unknown."""
    turn = Turn()
    turn.submit(job("a"), single=True)
    turn.commit()
    turn.hear_start(1)
    key = turn.key(1)
    turn.machine.heard(Heard(key, "coordinator", "gone", WitnessVanished(turn.now, 4)), turn.now)
    (settled,) = [event for event in turn.commit() if isinstance(event, Observed) and event.verdict]
    assert settled.verdict is not None
    assert (settled.verdict.state, settled.verdict.exit, settled.verdict.verified) == (State.UNVERIFIED, None, False)


def test_a_submission_that_could_not_be_stored_leaves_nothing() -> None:
    """Withdrawn, it holds no room and never starts."""
    turn = Turn(cpus=1)
    run = turn.submit(job("a"), single=True)
    turn.machine.schedule(turn.now)
    turn.machine.withdraw(run.number)
    turn.submit(job("b"), single=True)
    turn.commit()
    assert turn.started() == ["b"]
    assert all(event.run != run.number for event in turn.stored)


def begin_step(turn: Turn, tasks: int = 2, token: str = "t", **fields: object) -> None:
    spec = StepSpec("step", ("true",), "/", tasks=tasks, **fields)  # type: ignore[arg-type]
    turn.machine.begin_step(turn.key(1), token, spec, (0, 1, 2), turn.now)


def step_starts(turn: Turn) -> list[str]:
    starts, turn.machine.out.task_starts = turn.machine.out.task_starts, []
    return [task.key.rpartition(".")[2] for _, task in starts]


def end_task(
    turn: Turn, key: str, exit_status: ExitStatus = ExitStatus(), acts: tuple[Act, ...] = (), age_s: float = 0.0
) -> None:
    record = WitnessRecord(key, 5, exit_status, turn.now, 1.0, acts=acts)
    turn.machine.heard(Heard(key, "witness", "end", record, age_s), turn.now)


def test_a_steps_tasks_start_after_its_intent_is_durable() -> None:
    """And the same token is the same step."""
    turn = Turn()
    turn.submit(job("a", request=Request(cpus=2)), single=True)
    turn.commit()
    turn.hear_start(1)
    begin_step(turn)
    assert step_starts(turn) == []
    turn.commit()
    assert step_starts(turn) == ["t0", "t1"]
    begin_step(turn)
    turn.commit()
    assert step_starts(turn) == []


def test_a_job_whose_step_runs_on_is_completing_until_it_has_ended() -> None:
    """The script's verdict waits for the step, which is ended; the derived exit is the step's."""
    turn = Turn()
    turn.submit(job("a", request=Request(cpus=2)), single=True)
    turn.commit()
    turn.hear_start(1)
    begin_step(turn, tasks=1)
    turn.commit()
    key = turn.key(1)
    turn.hear_end(1)
    turn.commit()
    assert turn.state(1) is State.COMPLETING
    assert [(control.key, control.verb) for control in turn.machine.out.controls] == [(f"{key}.s0.t0", "cancel")]
    end_task(turn, f"{key}.s0.t0", ExitStatus(signal=15))
    turn.commit()
    assert turn.state(1) is State.COMPLETED


def test_steps_wait_for_the_jobs_cpus() -> None:
    """A step takes all of the job's cpus unless it is exact; the next begins when it has ended."""
    turn = Turn()
    turn.submit(job("a", request=Request(cpus=2)), single=True)
    turn.commit()
    turn.hear_start(1)
    key = turn.key(1)
    begin_step(turn, tasks=1, token="one")
    begin_step(turn, tasks=1, token="two")
    turn.commit()
    assert step_starts(turn) == ["t0"]
    end_task(turn, f"{key}.s0.t0")
    turn.commit()
    assert step_starts(turn) == ["t0"]


def stepping(tasks: int) -> tuple[Turn, str]:
    """A running job with a step of so many tasks, handed over; the key of its tasks up to their number."""
    turn = Turn()
    turn.submit(job("a", request=Request(cpus=2)), single=True)
    turn.commit()
    turn.hear_start(1)
    begin_step(turn, tasks=tasks)
    turn.commit()
    return turn, f"{turn.key(1)}.s0.t"


def step_end(turn: Turn) -> StepEnded:
    (ended,) = [event for event in turn.commit() if isinstance(event, StepEnded)]
    return ended


def test_a_step_that_nobody_saw_end_adds_an_unknown_to_the_derived_exit() -> None:
    """Its witness vanished: the step is UNVERIFIED, and its share is None, not 0."""
    turn, tasks = stepping(2)
    end_task(turn, f"{tasks}0")
    turn.machine.heard(Heard(f"{tasks}1", "coordinator", "gone", WitnessVanished(turn.now, 4)), turn.now)
    ended = step_end(turn)
    assert (ended.verdict.state, ended.verdict.exit, ended.derived) == (State.UNVERIFIED, None, None)


def test_a_step_out_of_memory_adds_its_code_though_a_task_was_lost() -> None:
    """0:125 is what is known of it."""
    turn, tasks = stepping(2)
    record = WitnessRecord(f"{tasks}0", 5, ExitStatus(signal=9), turn.now, 1.0, oom_kills=1)
    turn.machine.heard(Heard(record.key, "witness", "end", record), turn.now)
    turn.machine.heard(Heard(f"{tasks}1", "coordinator", "gone", WitnessVanished(turn.now, 4)), turn.now)
    ended = step_end(turn)
    assert (ended.verdict.state, ended.derived) == (State.OUT_OF_MEMORY, 125)


def test_a_step_that_was_cancelled_before_it_began_adds_nothing() -> None:
    """Nothing ran, so nothing is unknown."""
    turn = Turn()
    turn.submit(job("a", request=Request(cpus=2)), single=True)
    turn.commit()
    turn.hear_start(1)
    begin_step(turn, tasks=1)
    step = turn.machine.find_step(turn.key(1), 0)
    assert step is not None
    turn.machine.cancel_step(step, "me", turn.now)
    ended = step_end(turn)
    assert (ended.verdict.state, ended.derived) == (State.CANCELLED, 0)


def test_a_step_that_the_engine_refused_has_failed_to_start() -> None:
    """The engine's text says why; no witness vanished, since there was none."""
    turn, tasks = stepping(1)
    refused = Refused(turn.now, "no witness could be started")
    turn.machine.heard(Heard(f"{tasks}0", "engine", refused.text, refused), turn.now)
    ended = step_end(turn)
    assert (ended.verdict.state, ended.verdict.reason) == (State.FAILED, "JobLaunchFailure")
    assert (ended.verdict.source, ended.verdict.detail, ended.derived) == ("engine", refused.text, None)


def test_what_was_only_planned_is_no_attempt() -> None:
    """A job that was cancelled before its program was given to the engine has its first attempt when it runs."""
    turn = Turn(cpus=1)
    run = turn.submit(job("a"), job("b"))
    turn.commit()
    for _ in range(3):
        assert 3 in turn.machine.by_job  # planned ahead
        cancel.cancel(turn.machine, run, 1, "me", turn.now)
        turn.commit()
        retry.retry(turn.machine, run, [1], "me", turn.now)
        turn.commit()
    turn.run_to_end(2)
    turn.commit()
    assert turn.started() == ["a", "b"]
    assert turn.machine.by_job[3].attempt == 1


def test_a_retry_that_was_only_planned_is_given_back_to_the_budget() -> None:
    """A retry is used when its program is given to the engine."""
    rule = RetryRule(max=5, codes=(1,))
    flow = FlowSpec("flow", (job("a", retry=rule), job("b")), retry_budget=3)
    turn = Turn(cpus=1)
    run = turn.machine.submit(Submission(flow, ORIGIN), turn.now)
    turn.commit()
    turn.run_to_end(2, ExitStatus(code=1))
    turn.commit()
    assert turn.started() == ["a", "b"]
    turn.now += 3600
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.machine.by_job[2].attempt == 2  # planned; b has the CPU
    cancel.cancel(turn.machine, run, 0, "me", turn.now)
    assert (run.retries_used, run.attempts[0]) == (0, 1)
