"""Coming back: a state machine that is made again from the store is as the one that was killed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from test_machine import ORIGIN, Turn, begin_step, end_task, job

from aver.coordinator.recovery import ask_engines, load_run
from aver.coordinator.requests import cancel, requeue, retry, suspend, update
from aver.coordinator.requests.step import signal
from aver.coordinator.state.live import Identity
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Control, CouldNotAsk, Heard, NotListed, ObserveReply, Seen
from aver.engines.registry import capabilities_of
from aver.engines.slurm.states import read_word
from aver.errors import UsageError
from aver.model.events import Event, GpusGiven, StepEnded, TaskEnded
from aver.model.evidence import (
    Act,
    ActKind,
    LeftQueue,
    MemoryWatch,
    QueueSaid,
    Resumed,
    Suspended,
    Taken,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, JobSpec, Request, RetryRule, Submission
from aver.model.states import State
from aver.plan.packing import Room
from aver.protocol.messages import SignalStep
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer
from store_replay import replay

FAILED = ExitStatus(code=1)
CANCEL = Act(ActKind.CANCEL, 1.0, 15)
TWICE = RetryRule(max=1, states=(State.FAILED,))


class FakeEngine:
    """Has the attempts that it was handed."""

    def __init__(self, has: set[str]) -> None:
        self.has = has

    def observe(self, keys: list[str], name: str = "") -> list[ObserveReply]:
        return [Seen(key) if key in self.has else NotListed(key) for key in keys]


class StoredTurn(Turn):
    """A state machine whose events go to a real store, and which can be killed and made again."""

    def __init__(self, folder: Path, gpus: int = 0, cpus: int = 2) -> None:
        super().__init__(cpus)
        self.path = folder / "aver.db"
        self.writer = Writer.open(self.path)
        self.room = Room.of(cpus, gpus, 1 << 40)
        self.handed: set[str] = set()
        self.machine = Machine(self.machine.identity, self.room, 1, capabilities_of)

    def commit(self) -> list[Event]:
        """Commit until nothing follows, and return all of it."""
        done: list[Event] = []
        while True:
            self.machine.schedule(self.now)
            events, self.machine.out.events = self.machine.out.events, []
            if not events:
                break
            self.writer.commit(events)
            self.machine.committed(events, self.now)
            done += events
        self.handed |= {one.key for one in self.machine.out.starts}
        self.handed |= {task.key for _, task in self.machine.out.task_starts}
        self.stored += done
        return done

    def come_back(self, boot: str = "b") -> None:
        """Kill the coordinator, and start it again; another boot: its machine was restarted."""
        self.machine = Machine(
            Identity("0123abcd", boot * 32, "here"), self.room, self.writer.next_id(), capabilities_of
        )
        reader = Reader.open(self.path)
        assert reader is not None
        with reader:
            for number in reader.unsettled_runs():
                load_run(self.machine, reader, number, self.now)
        engine = FakeEngine(self.handed)
        ask_engines(self.machine, engine, self.now)  # type: ignore[arg-type]

    def controls(self) -> list[Control]:
        found, self.machine.out.controls = self.machine.out.controls, []
        return found


@pytest.fixture
def turn(tmp_path: Path) -> Iterator[StoredTurn]:
    made = StoredTurn(tmp_path, gpus=2)
    yield made
    made.writer.close()
    assert replay(made.path) == []


def submit(turn: StoredTurn, *jobs: JobSpec, budget: int | None = None) -> LiveRun:
    flow = FlowSpec("flow", jobs, is_single=len(jobs) == 1, retry_budget=budget)
    return turn.machine.submit(Submission(flow, ORIGIN), turn.now)


def fail(turn: StoredTurn, number: int, exit_status: ExitStatus = FAILED) -> None:
    """One attempt of the job, from its start to its end."""
    turn.now += 10
    turn.machine.tick(turn.now)
    turn.commit()
    turn.run_to_end(number, exit_status)
    turn.commit()


def test_a_cancel_holds_though_the_clock_was_set_back(turn: StoredTurn) -> None:
    """What came after what is said by the numbers of events, never by the wall's clock."""
    run = submit(turn, job("a"))
    turn.commit()
    turn.hear_start(1)
    turn.now -= 3600
    assert cancel.cancel(turn.machine, run, 0, "me", turn.now) == "cancelling"
    turn.commit()
    turn.come_back()
    assert [(control.key, control.verb) for control in turn.controls()] == [(turn.key(1), "cancel")]
    assert turn.machine.by_job[1].cancel_asked


def with_step(turn: StoredTurn, **fields: object) -> str:
    """A job that runs with a step of two tasks, both handed over; the job's key."""
    submit(turn, job("a", request=Request(cpus=2, time_s=3600)))
    turn.commit()
    turn.hear_start(1)
    begin_step(turn, tasks=2, **fields)
    turn.commit()
    return turn.key(1)


def end_first_task(turn: StoredTurn, exit_status: ExitStatus = FAILED) -> None:
    end_task(turn, f"{turn.key(1)}.s0.t0", exit_status)


def asked_again(turn: StoredTurn) -> list[Control]:
    """What the engine is told after a crash that came before it heard of anything."""
    turn.commit()
    turn.controls()
    turn.come_back()
    return turn.controls()


def of(key: str, verb: str, tasks: Sequence[int] = (0, 1), signal: int = 0) -> list[Control]:
    return [Control(f"{key}.s0.t{task}", verb, signal=signal) for task in tasks]


@pytest.mark.parametrize("resumed", [False, True])
def test_a_suspension_is_asked_for_again(turn: StoredTurn, resumed: bool) -> None:
    """The last of the two requests, of the script and of its tasks: nobody knows whether it was passed on."""
    key = with_step(turn)
    run = turn.machine.runs[1]
    assert suspend.suspend(turn.machine, run, 0, "me", turn.now) == "suspended"
    if resumed:
        assert suspend.resume(turn.machine, run, 0, "me", turn.now) == "resumed"
    verb = "resume" if resumed else "suspend"
    assert asked_again(turn) == [Control(key, verb), *of(key, verb)]
    assert not turn.machine.by_job[1].is_suspended


@pytest.mark.parametrize("verb", ["suspend", "resume"])
def test_a_suspension_is_shown_when_it_was_done(turn: StoredTurn, verb: str) -> None:
    """Whoever was asked before the crash, only what the witnesses say after it counts."""
    key = with_step(turn)
    run = turn.machine.runs[1]
    suspend.suspend(turn.machine, run, 0, "me", turn.now)
    keys = [key, f"{key}.s0.t0", f"{key}.s0.t1"]
    if verb == "resume":
        for one in keys:
            turn.machine.heard(Heard(one, "witness", "said", Suspended(1.0)), turn.now)
        assert turn.machine.by_job[1].is_suspended
        suspend.resume(turn.machine, run, 0, "me", turn.now)
    assert asked_again(turn) == [Control(key, verb), *of(key, verb)]
    done = Suspended(2.0) if verb == "suspend" else Resumed(2.0)
    for one in keys:
        assert turn.machine.by_job[1].is_suspended is (verb == "resume")
        turn.machine.heard(Heard(one, "witness", "said", done), turn.now)
    assert turn.machine.by_job[1].is_suspended is (verb == "suspend")


def test_a_cancel_is_asked_for_again_of_the_tasks_too(turn: StoredTurn) -> None:
    """As it was when the person asked."""
    key = with_step(turn)
    cancel.cancel(turn.machine, turn.machine.runs[1], 0, "me", turn.now)
    assert asked_again(turn) == [Control(key, "cancel"), *of(key, "cancel")]


def test_a_limit_is_asked_for_again(turn: StoredTurn) -> None:
    """What the witness goes by is what the person asked for last."""
    key = with_step(turn)
    for time_s in (60, 90):
        update.update(turn.machine, turn.machine.runs[1], 0, {"time_s": time_s}, "me", turn.now)
    assert asked_again(turn) == [Control(key, "limit", time_s=90)]


def test_a_kill_of_a_step_is_asked_for_again(turn: StoredTurn) -> None:
    """KILL at once, to each task that has not ended."""
    key = with_step(turn)
    step = turn.machine.find_step(key, 0)
    assert step is not None
    turn.machine.kill_step(step, "me", turn.now)
    turn.commit()
    end_first_task(turn, ExitStatus(signal=9))
    assert asked_again(turn) == of(key, "cancel", [1], signal=9)


def test_what_a_bad_exit_ends_is_ended_after_a_restart(turn: StoredTurn) -> None:
    """--kill-on-bad-exit: the other task is told again, and does not count in the step's exit."""
    key = with_step(turn, kill_on_bad_exit=True)
    end_first_task(turn, ExitStatus(3))
    assert asked_again(turn) == of(key, "cancel", [1])
    end_task(turn, f"{key}.s0.t1", ExitStatus(signal=15), (CANCEL,))
    (ended,) = [event for event in turn.commit() if isinstance(event, StepEnded)]
    assert (ended.verdict.exit, ended.first_failed) == (ExitStatus(3), 0)


def test_a_bad_exit_ends_nobody_before_it_is_durable(turn: StoredTurn) -> None:
    """A crash before the commit: who hears both ends later could not tell which task was ended because of the other."""
    key = with_step(turn, kill_on_bad_exit=True)
    end_first_task(turn, ExitStatus(3))
    assert turn.controls() == []
    turn.commit()
    assert turn.controls() == of(key, "cancel", [1])


@pytest.mark.parametrize("is_stored", [False, True], ids=["heard after the restart", "stored before it"])
def test_a_bad_exit_and_a_task_that_no_crash_let_begin(turn: StoredTurn, is_stored: bool) -> None:
    """The coordinator died between two orders of a step: srun comes back, and ends with 143 as if both had begun."""
    key = with_step(turn, kill_on_bad_exit=True)
    turn.handed.discard(f"{key}.s0.t1")
    turn.machine.out.task_starts.clear()
    if is_stored:
        end_first_task(turn, ExitStatus(3))
        turn.commit()
        turn.come_back()
    else:
        turn.come_back()
        end_first_task(turn, ExitStatus(3))
    (ended,) = [event for event in turn.commit() if isinstance(event, StepEnded)]
    assert turn.machine.out.task_starts == []
    assert (ended.verdict.state, ended.verdict.exit, ended.first_failed) == (State.FAILED, ExitStatus(3), 0)
    assert (ended.srun_code, ended.derived) == (143, 3 << 8)


def test_a_kill_of_a_step_of_which_one_task_began(turn: StoredTurn) -> None:
    """The one that never began never runs; the other has not ended before its witness says so."""
    key = with_step(turn)
    step = turn.machine.find_step(key, 0)
    assert step is not None
    turn.machine.kill_step(step, "me", turn.now)
    turn.commit()
    turn.handed.discard(f"{key}.s0.t0")
    turn.come_back()
    ended = [event for event in turn.commit() if isinstance(event, (TaskEnded, StepEnded))]
    assert [event.task for event in ended if isinstance(event, TaskEnded)] == [0]
    end_task(turn, f"{key}.s0.t1", ExitStatus(signal=9), (CANCEL,))
    (over,) = [event for event in turn.commit() if isinstance(event, StepEnded)]
    assert (over.verdict.state, over.verdict.exit, over.srun_code) == (State.CANCELLED, ExitStatus(signal=9), 137)


def test_the_end_of_a_task_that_is_stored_is_not_kept_by_the_engine(turn: StoredTurn) -> None:
    """It is heard again after a restart, while its step goes on: nobody needs it, so that its witness may leave."""
    key = with_step(turn)
    end_first_task(turn)
    turn.commit()
    turn.come_back()
    record = WitnessRecord(f"{key}.s0.t0", 5, FAILED, turn.now, 1.0)
    assert turn.machine.heard(Heard(record.key, "witness", "end", record), turn.now) is False
    assert [event for event in turn.commit() if isinstance(event, TaskEnded)] == []


@pytest.mark.parametrize("fields", [{"kill_on_bad_exit": True}, {"wait_s": 10}], ids=["-K", "--wait"])
def test_a_task_that_ended_by_itself_counts_in_the_steps_exit(turn: StoredTurn, fields: dict[str, object]) -> None:
    """Two tasks fail in the same moment: whichever is heard first, neither was ended because of the other."""
    key = with_step(turn, **fields)
    end_first_task(turn, ExitStatus(3))
    turn.now += 11
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() != []
    end_task(turn, f"{key}.s0.t1", ExitStatus(5))
    (ended,) = [event for event in turn.commit() if isinstance(event, StepEnded)]
    assert (ended.verdict.exit, ended.srun_code) == (ExitStatus(5), 5)


@pytest.mark.parametrize("of_run", [False, True])
def test_a_kill_is_asked_for_again_as_a_kill(turn: StoredTurn, of_run: bool) -> None:
    """`cancel --force`, of a job or of its run: not TERM with its kill wait after a restart."""
    key = with_step(turn)
    run = turn.machine.runs[1]
    if of_run:
        cancel.cancel_run(turn.machine, run, "me", turn.now, at_once=False, force=True)
    else:
        cancel.cancel(turn.machine, run, 0, "me", turn.now, force=True)
    assert asked_again(turn) == [Control(key, "cancel", signal=9), *of(key, "cancel", signal=9)]


@pytest.mark.parametrize("has_it", [False, True])
def test_an_order_that_was_not_begun_when_its_run_was_cancelled(turn: StoredTurn, has_it: bool) -> None:
    """Its engine may have it: it is told, and the verdict follows from what it says. What nobody has is CANCELLED."""
    submit(turn, job("a"), job("b"))
    turn.commit()
    (key, *_) = turn.handed
    cancel.cancel_run(turn.machine, turn.machine.runs[1], "me", turn.now, at_once=False)
    turn.commit()
    if not has_it:
        turn.handed.clear()
    turn.come_back()
    turn.commit()
    asked = [control for control in turn.controls() if control.key == key]
    assert asked == ([Control(key, "cancel")] if has_it else [])
    with Reader.open(turn.path) as reader:  # type: ignore[union-attr]
        states = {row.state for row in reader.jobs()}
    assert states == {State.PENDING if has_it else State.CANCELLED}


@pytest.mark.parametrize("is_over", [False, True])
def test_the_wait_of_a_step_goes_on_after_a_restart(turn: StoredTurn, is_over: bool) -> None:
    """--wait counts from the first task's end: what is left of it is left, and what was over is over."""
    key = with_step(turn, wait_s=10)
    end_first_task(turn, ExitStatus())
    turn.commit()
    turn.now += 11 if is_over else 5
    turn.machine.tick(turn.now)
    kill = of(key, "cancel", [1], signal=9)
    assert asked_again(turn) == (kill if is_over else [])
    turn.now += 6
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() == ([] if is_over else kill)


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_changes_no_wait(turn: StoredTurn, by_s: float) -> None:
    """--wait gives its seconds, whatever the wall's clock says meanwhile."""
    key = with_step(turn, wait_s=10)
    end_first_task(turn, ExitStatus())
    turn.commit()
    turn.now += 5 + by_s
    turn.machine.timers.shift(by_s)
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() == []
    turn.now += 6
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() == of(key, "cancel", [1], signal=9)


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_a_task_that_ends_after_the_clock_was_set_changes_no_wait(turn: StoredTurn, by_s: float) -> None:
    """The others keep what is left of --wait: the first end has its time by the clock of before."""
    submit(turn, job("a", request=Request(cpus=2)))
    turn.commit()
    turn.hear_start(1)
    begin_step(turn, tasks=3, wait_s=10, is_overlapping=True)
    turn.commit()
    end_first_task(turn, ExitStatus())
    turn.commit()
    turn.now += 5 + by_s
    turn.machine.timers.shift(by_s)
    end_task(turn, f"{turn.key(1)}.s0.t1")
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() == []
    turn.now += 6
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() == of(turn.key(1), "cancel", [2], signal=9)


@pytest.mark.parametrize("is_over", [False, True])
def test_the_wait_of_a_step_counts_from_an_end_that_nobody_heard(turn: StoredTurn, is_over: bool) -> None:
    """A task ended while no coordinator ran: that time is over, also after the next restart. A task that ended later
    and was heard first gives no more."""
    submit(turn, job("a", request=Request(cpus=2)))
    turn.commit()
    turn.hear_start(1)
    begin_step(turn, tasks=3, wait_s=10, is_overlapping=True)
    turn.commit()
    asked_again(turn)
    turn.now += 11 if is_over else 8
    end_task(turn, f"{turn.key(1)}.s0.t1", age_s=1)
    end_task(turn, f"{turn.key(1)}.s0.t0", age_s=11 if is_over else 8)
    turn.machine.tick(turn.now)
    turn.commit()
    kill = of(turn.key(1), "cancel", [2], signal=9)
    assert turn.controls() == (kill if is_over else [])
    turn.now += 3
    assert asked_again(turn) == (kill if is_over else [])
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() == ([] if is_over else kill)


def test_the_wait_of_a_step_counts_from_the_first_end(turn: StoredTurn) -> None:
    """A task that ends later gives the others no more time."""
    submit(turn, job("a", request=Request(cpus=2)))
    turn.commit()
    turn.hear_start(1)
    begin_step(turn, tasks=3, wait_s=10, is_overlapping=True)
    turn.commit()
    for task in range(2):
        end_task(turn, f"{turn.key(1)}.s0.t{task}")
        turn.now += 6
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.controls() == of(turn.key(1), "cancel", [2], signal=9)


def test_what_was_seen_to_be_done_is_not_asked_for_again(turn: StoredTurn) -> None:
    """The killed step has ended, and the cancelled job has begun again: nothing is passed on."""
    key = with_step(turn, kill_on_bad_exit=True)
    end_first_task(turn, ExitStatus(3))
    end_task(turn, f"{key}.s0.t1", ExitStatus(signal=15), (CANCEL,))
    assert asked_again(turn) == []
    run = turn.machine.runs[1]
    assert requeue.requeue(turn.machine, run, 0, "requeue", "me", turn.now) == "requeued"
    turn.commit()
    turn.hear_end(1, ExitStatus(signal=15))
    turn.now += 3
    turn.machine.tick(turn.now)
    turn.commit()
    turn.hear_start(1)
    assert asked_again(turn) == []


def test_a_requeued_job_keeps_its_pause_over_a_restart(turn: StoredTurn) -> None:
    """Whoever asks meanwhile sees that it was requeued, also when the coordinator died in between."""
    run = submit(turn, job("a"))
    turn.commit()
    turn.hear_start(1)
    requeue.requeue(turn.machine, run, 0, "requeue", "me", turn.now)
    turn.commit()
    turn.hear_end(1, ExitStatus(signal=15))
    turn.commit()
    turn.started()
    turn.come_back()
    turn.commit()
    assert turn.started() == []
    turn.now += 3
    turn.machine.tick(turn.now)
    turn.commit()
    assert turn.started() == ["a"]


def test_jobs_go_on_in_the_order_in_which_they_waited(turn: StoredTurn) -> None:
    """Those whose attempts were planned ahead are next, and not behind those that had no place among them."""
    run = submit(turn, *(job(f"j{n}", request=Request(cpus=2)) for n in range(100)))
    for number in range(100):
        turn.commit()
        assert turn.started() == [f"j{number}"]
        if number in (0, 3, 40):
            turn.come_back()
        turn.run_to_end(run.job_number(number))


@pytest.mark.parametrize("number", [5, 90])
def test_a_priority_that_was_asked_for_holds(turn: StoredTurn, number: int) -> None:
    """Also of a job so far behind that no attempt of it was planned yet."""
    run = submit(turn, *(job(f"j{n}", request=Request(cpus=2)) for n in range(100)))
    turn.commit()
    assert turn.started() == ["j0"]
    turn.hear_start(run.job_number(0))
    update.update(turn.machine, run, number, {"priority": 9}, "me", turn.now)
    turn.commit()
    turn.come_back()
    turn.hear_end(run.job_number(0))
    turn.commit()
    assert turn.started() == [f"j{number}"]


def test_a_requeue_holds_though_the_clock_was_set_back(turn: StoredTurn) -> None:
    """As a cancel."""
    run = submit(turn, job("a"))
    turn.commit()
    turn.hear_start(1)
    turn.now -= 3600
    assert requeue.requeue(turn.machine, run, 0, "requeue", "me", turn.now) == "requeued"
    turn.commit()
    turn.come_back()
    assert turn.machine.by_job[1].requeue == "requeue"


def test_a_cancel_of_an_earlier_attempt_says_nothing_of_a_later_one(turn: StoredTurn) -> None:
    """Also if the clock was set back between them, so that the later one looks older."""
    run = submit(turn, job("a"), job("b"))
    turn.commit()
    turn.hear_start(2)
    cancel.cancel(turn.machine, run, 0, "me", turn.now)
    turn.commit()
    turn.hear_end(2, ExitStatus(signal=15))
    turn.commit()
    turn.now -= 3600
    retry.retry(turn.machine, run, [0], "me", turn.now)
    turn.commit()
    turn.come_back()
    assert [control.key for control in turn.controls()] == []


def test_a_persons_retry_gives_the_jobs_share_of_the_budget_back(turn: StoredTurn) -> None:
    """The count begins anew, now as after a restart."""
    run = submit(turn, job("a", retry=TWICE), job("b"), budget=1)
    fail(turn, 2)
    fail(turn, 2)
    assert (turn.state(2), run.retries_used) == (State.FAILED, 1)
    retry.retry(turn.machine, run, [0], "me", turn.now)
    assert run.retries_used == 0
    fail(turn, 2)
    assert (turn.state(2), run.retries_used) == (State.PENDING, 1)


def test_what_is_counted_is_the_same_after_a_restart(turn: StoredTurn) -> None:
    """After each turn of a long story: retries, a person's retry, a requeue."""

    def compare() -> None:
        turn.commit()
        before = turn.machine.runs[1]
        turn.come_back()
        after = turn.machine.runs[1]
        assert (after.retries_used, after.history) == (before.retries_used, before.history)

    submit(turn, job("a", retry=RetryRule(max=2, states=(State.FAILED,))), job("b"), budget=9)
    turn.commit()
    for _ in range(2):
        fail(turn, 2)
        compare()
    turn.now += 10
    turn.machine.tick(turn.now)
    turn.commit()
    turn.hear_start(2)
    assert requeue.requeue(turn.machine, turn.machine.runs[1], 0, "requeue", "me", turn.now) == "requeued"
    turn.commit()
    turn.hear_end(2, ExitStatus(signal=15))
    compare()
    assert turn.state(2) is State.PENDING
    fail(turn, 2)
    compare()
    assert turn.state(2) is State.FAILED
    retry.retry(turn.machine, turn.machine.runs[1], [0], "me", turn.now)
    compare()
    assert turn.machine.runs[1].retries_used == 0
    fail(turn, 2)
    compare()
    assert turn.machine.runs[1].retries_used == 1


def test_a_limit_that_was_changed_before_a_retry_does_not_hold_for_it(turn: StoredTurn) -> None:
    """The new attempt has the flow's limit, also after a restart: it is not ended by the old one."""
    run = submit(turn, job("a", request=Request(time_s=3600)), job("b"))
    turn.commit()
    turn.hear_start(2)
    update.update(turn.machine, run, 0, {"time_s": 10}, "me", turn.now)
    turn.commit()
    turn.hear_end(2, FAILED)
    turn.commit()
    retry.retry(turn.machine, run, [0], "me", turn.now)
    turn.commit()
    turn.hear_start(2)
    turn.commit()
    turn.come_back()
    assert turn.machine.by_job[2].request.time_s == 3600
    assert turn.controls() == []


def test_gpus_are_written_down_before_the_attempt_is_handed_over(turn: StoredTurn) -> None:
    """Law 3: which ones is durable first."""
    submit(turn, job("a", request=Request(gpus=1)))
    turn.machine.schedule(turn.now)
    events, turn.machine.out.events = turn.machine.out.events, []
    turn.writer.commit(events)
    turn.machine.committed(events, turn.now)
    assert turn.started() == []
    (given,) = [event for event in turn.commit() if isinstance(event, GpusGiven)]
    assert given.gpus == (0,)
    assert turn.started() == ["a"]


def test_no_gpu_is_given_twice_over_a_restart(turn: StoredTurn) -> None:
    """What runs keeps its gpu; the next job gets another one, and both are free again in the end."""
    submit(turn, job("a", request=Request(gpus=1)))
    turn.commit()
    turn.hear_start(1)
    turn.commit()
    turn.come_back()
    assert turn.machine.by_job[1].gpus == (0,)
    submit(turn, job("b", request=Request(gpus=1)))
    turn.commit()
    assert turn.machine.by_job[2].gpus == (1,)
    turn.hear_end(1)
    turn.commit()
    submit(turn, job("c", request=Request(gpus=1)))
    turn.commit()
    assert turn.machine.by_job[3].gpus == (0,)


def test_gpus_of_an_attempt_that_never_began_are_free_after_a_restart(turn: StoredTurn) -> None:
    """The coordinator died before it handed it over: it is given gpus anew."""
    submit(turn, job("a", request=Request(gpus=2)))
    turn.commit()
    turn.handed.clear()
    turn.come_back()
    turn.commit()
    assert turn.machine.by_job[1].gpus == (0, 1)
    assert turn.started() == ["a"]


def hear_task(turn: StoredTurn, task: int, code: int, of: int | None) -> None:
    name = f"{turn.key(1)}.s0.t{task}"
    left = WitnessRecord(name, 5, ExitStatus(code), 1001.0, 1.0, watch=MemoryWatch.CGROUP2, step_tasks=of)
    turn.machine.heard(Heard(name, "witness", "", left), turn.now)


def with_step_on_a_cluster(turn: StoredTurn, of: int | None) -> None:
    """A job that runs on a cluster, and the record of the first task of its step."""
    submit(turn, job("a", engine="slurm"))
    turn.commit()
    for evidence in (Taken(1.0, "7"), QueueSaid(2.0, read_word("RUNNING"))):
        turn.machine.heard(Heard(turn.key(1), "test", "", evidence), turn.now)
    hear_task(turn, 0, 0, of)
    turn.commit()


@pytest.mark.parametrize("of", [None, 2])
def test_a_clusters_step_goes_on_after_this_machines_restart(turn: StoredTurn, of: int | None) -> None:
    """Its tasks are elsewhere: nothing is said of them until their records are heard, or their job is over."""
    with_step_on_a_cluster(turn, of)
    turn.come_back(boot="c")
    assert [event for event in turn.commit() if isinstance(event, TaskEnded | StepEnded)] == []
    hear_task(turn, 0, 0, of)  # told again
    hear_task(turn, 1, 4, of)
    key = turn.key(1)
    whole = WitnessRecord(f"{key}.r0", 5, ExitStatus(), 1000.0, 9.0, watch=MemoryWatch.CGROUP2)
    for evidence in (whole, LeftQueue(5.0)):
        turn.machine.heard(Heard(key, "test", "", evidence), turn.now)
    (ended,) = [event for event in turn.commit() if isinstance(event, StepEnded)]
    assert (ended.verdict.state, ended.derived) == (State.FAILED, 4 << 8)
    assert turn.state(1) is State.COMPLETED


def test_nobody_says_that_a_clusters_step_is_cancelled(turn: StoredTurn) -> None:
    """Aver reaches no step on a cluster: who asks is told, also after a restart, and no task gets a verdict."""
    with_step_on_a_cluster(turn, 2)
    turn.come_back()
    with pytest.raises(UsageError, match=r"step 1\.0 is Slurm's"):
        signal(turn.machine, SignalStep(turn.key(1), 0, by="me"), turn.now)
    assert [event for event in turn.commit() if isinstance(event, TaskEnded)] == []


def test_what_may_have_been_handed_over_is_not_handed_over_again() -> None:
    """The engine can't say whether it ever had the attempt: nobody knows, and nothing is started."""

    class Unsure(FakeEngine):
        def observe(self, keys: list[str], name: str = "") -> list[ObserveReply]:
            return [CouldNotAsk(key, "its file is damaged") for key in keys]

    turn = Turn()
    turn.submit(job("a", engine="slurm"), single=True)
    turn.commit()
    turn.started()
    ask_engines(turn.machine, Unsure(set()), turn.now)  # type: ignore[arg-type]
    turn.commit()
    assert turn.started() == []
    assert turn.state(1) is State.UNVERIFIED
