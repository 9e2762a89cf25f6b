"""Law 4: live state is a fold of the events, and nothing else changes it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_machine import ORIGIN, TRUE

from aver.coordinator.recovery import replay_run
from aver.coordinator.requests import cancel, hold, reinit, requeue, retry, suspend, update
from aver.coordinator.state import cancellation, end, fold
from aver.coordinator.state.attempt import LiveAttempt, LiveStep, Phase
from aver.coordinator.state.live import Identity, IllegalMove, LiveState, TakeGenerated
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Heard
from aver.engines.registry import capabilities_of
from aver.engines.slurm.states import read_word
from aver.errors import UsageError
from aver.model.events import Event, JobMoved, Observed
from aver.model.evidence import (
    LeftQueue,
    MemoryWatch,
    QueueSaid,
    Resumed,
    StartedAgain,
    Suspended,
    Taken,
    WitnessRecord,
    WitnessStart,
    WitnessVanished,
)
from aver.model.exit import ExitStatus
from aver.model.job import (
    CheckpointRule,
    Condition,
    FlowSpec,
    JobSpec,
    Matrix,
    Need,
    Needs,
    Request,
    RetryRule,
    StepSpec,
    Submission,
)
from aver.model.states import MOVES, State
from aver.plan import planner
from aver.plan.packing import Room
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer

IDENTITY = Identity("0123abcd", "b" * 32, "here")
AGAIN = RetryRule(max=2, states=(State.FAILED, State.OUT_OF_MEMORY), grow_mem=2.0, backoff_s=2.0)
GPU = Request(gpus=1, mem_bytes=1 << 30)
FLOWS = (
    FlowSpec("one", (JobSpec("a", TRUE),), is_single=True),
    FlowSpec("held", (JobSpec("a", TRUE, hold=True), JobSpec("b", TRUE, GPU, Needs((Need("a"),))))),
    FlowSpec(
        "again",
        (JobSpec("a", TRUE, GPU, retry=AGAIN), JobSpec("b", TRUE, retry=AGAIN), JobSpec("c", TRUE)),
        retry_budget=2,
    ),
    FlowSpec(
        "chain",
        (
            JobSpec("a", TRUE, checkpoint=CheckpointRule(codes=(0,))),
            JobSpec("b", TRUE, needs=Needs((Need("a"),)), begin_at=1020.0),
            JobSpec("c", TRUE, needs=Needs((Need("b"),)), condition=Condition.ALWAYS),
        ),
    ),
    FlowSpec("makes", (JobSpec("a", TRUE, generates="more.yaml", retry=AGAIN), JobSpec("b", TRUE))),
    FlowSpec("cluster", (JobSpec("a", TRUE, engine="slurm", slurm_requeues=True), JobSpec("b", TRUE, engine="slurm"))),
)
MEMBERS = Matrix((("i", tuple("1234567")),))
FLOWS += (
    FlowSpec(
        "many",
        (
            JobSpec("a", TRUE, matrix=MEMBERS, retry=AGAIN),
            JobSpec("b", TRUE, needs=Needs((Need("a"),)), matrix=MEMBERS),
            JobSpec("c", TRUE, needs=Needs((Need("a[i=3]"), Need("b"))), condition=Condition.ALWAYS, matrix=MEMBERS),
        ),
    ),
)
CHANGES = ({"time_s": 60}, {"priority": 5}, {"mem_bytes": 1 << 20}, {"begin_at": 1030.0}, {"throttle": 1})


@pytest.fixture(autouse=True, scope="module")
def few_are_many() -> Iterator[None]:
    """Two jobs in a row are ended together, and a cancelled run in parts of three."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planner, "MANY", 2)
        patched.setattr(end, "MANY", 2)
        patched.setattr(cancellation, "AT_ONCE", 3)
        yield


class World:
    """A state machine, all of whose events are kept; each method is a stimulus, chosen by two numbers."""

    def __init__(self) -> None:
        self.machine = Machine(IDENTITY, Room.of(3, 2, 1 << 40), 1, capabilities_of)
        self.now = 1000.0
        self.stored: list[Event] = []
        self.tokens = 0
        self.reading: list[TakeGenerated] = []
        self.machine.live.read_generated = lambda run, index, then: self.reading.append(then)

    # what it is made of

    def events(self) -> list[Event]:
        return [*self.stored, *self.machine.out.events]

    def commit(self, a: int = 0, b: int = 0) -> None:
        self.machine.schedule(self.now)
        events, self.machine.out.events = self.machine.out.events, []
        self.stored += events
        self.machine.committed(events, self.now)

    def _run(self, a: int) -> LiveRun | None:
        runs = list(self.machine.runs.values())
        return runs[a % len(runs)] if runs else None

    def _job(self, a: int, b: int) -> tuple[LiveRun, int] | None:
        run = self._run(a)
        return None if run is None else (run, b % run.job_count)

    def _attempt(self, a: int) -> LiveAttempt | None:
        there = [attempt for attempt in self.machine.attempts.values() if attempt.is_dispatched]
        return there[a % len(there)] if there else None

    def _step(self, a: int) -> LiveStep | None:
        attempt = self._attempt(a)
        steps = attempt.live_steps() if attempt is not None else []
        return steps[a % len(steps)] if steps else None

    def _hear(self, key: str, *evidence: Any) -> None:
        for one in evidence:
            self.machine.heard(Heard(key, "test", "said", one), self.now)

    # stimuli

    def submit(self, a: int, b: int) -> None:
        self.machine.submit(Submission(FLOWS[a % len(FLOWS)], ORIGIN), self.now)

    def wait(self, a: int, b: int) -> None:
        self.now += a
        self.machine.tick(self.now)

    def begin(self, a: int, b: int) -> None:
        attempt = self._attempt(a)
        if attempt is None:
            return
        if attempt.engine == "local":
            self._hear(attempt.key, WitnessStart(attempt.key, 5, 4, self.now))
        else:
            words = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")
            self._hear(attempt.key, Taken(self.now, "7"), QueueSaid(self.now, read_word(words[b % 4]), "Priority"))

    def end(self, a: int, b: int) -> None:
        attempt = self._attempt(a)
        if attempt is None:
            return
        exits = (ExitStatus(), ExitStatus(1), ExitStatus(signal=9), ExitStatus(3))
        record = WitnessRecord(
            attempt.key, 5, exits[b % 4], self.now, 1.0, oom_kills=int(b % 4 == 2), watch=MemoryWatch.CGROUP2
        )
        self._hear(attempt.key, record)
        if attempt.engine != "local":
            self._hear(attempt.key, StartedAgain(self.now, 1) if b % 3 else LeftQueue(self.now))

    def vanish(self, a: int, b: int) -> None:
        attempt = self._attempt(a)
        if attempt is not None and attempt.engine == "local":
            self._hear(attempt.key, WitnessVanished(self.now))

    def refuse(self, a: int, b: int) -> None:
        attempt = self._attempt(a)
        if attempt is not None:
            self.machine.rejected(attempt, "no", self.now)

    def cancel(self, a: int, b: int) -> None:
        found = self._job(a, b)
        if found is not None:
            cancel.cancel(self.machine, *found, "me", self.now)

    def cancel_run(self, a: int, b: int) -> None:
        run = self._run(a)
        if run is not None:
            cancel.cancel_run(self.machine, run, "me", self.now, bool(b % 2))

    def go_on_cancelling(self, a: int, b: int) -> None:
        self.machine.go_on_cancelling(self.now, most=3)

    def hold(self, a: int, b: int) -> None:
        found = self._job(a, b)
        if found is not None:
            hold.hold(self.machine, *found, "me", self.now)

    def release(self, a: int, b: int) -> None:
        found = self._job(a, b)
        if found is not None:
            hold.release(self.machine, *found, "me", self.now)

    def suspend(self, a: int, b: int) -> None:
        found = self._job(a, b)
        if found is not None:
            (suspend.suspend, suspend.resume)[a % 2](self.machine, *found, "me", self.now)

    def stand_still(self, a: int, b: int) -> None:
        attempt = self._attempt(a)
        if attempt is not None and attempt.engine == "local":
            self._hear(attempt.key, (Suspended, Resumed)[b % 2](1.0))

    def requeue(self, a: int, b: int) -> None:
        found = self._job(a, b)
        if found is not None:
            requeue.requeue(self.machine, *found, ("requeue", "requeuehold", "requeuespecial")[a % 3], "me", self.now)

    def change(self, a: int, b: int) -> None:
        found = self._job(a, b)
        if found is not None:
            update.update(self.machine, *found, CHANGES[a % len(CHANGES)], "me", self.now)

    def retry(self, a: int, b: int) -> None:
        found = self._job(a, b)
        if found is not None and found[0].settled_state(found[1]) not in (None, State.SKIPPED):
            retry.retry(self.machine, found[0], [found[1]], "me", self.now)

    def replace_flow(self, a: int, b: int) -> None:
        run = self._run(a)
        if run is not None and run.state.is_settled:
            failed = next((n for n in range(run.job_count) if run.settled_state(n) is not State.SKIPPED), 0)
            reinit.reinit(self.machine, run, {failed: "changed"}, run.submission.flow, "me", self.now)

    def begin_step(self, a: int, b: int) -> None:
        attempt = self._attempt(a)
        if attempt is None or attempt.engine != "local":
            return
        self.tokens += 1
        spec = StepSpec(
            "s", ("true",), "/", tasks=1 + b % 3, is_overlapping=True, kill_on_bad_exit=bool(a % 2),
            wait_s=3 if b % 2 else None,
        )  # fmt: skip
        try:
            self.machine.begin_step(attempt.key, f"t{self.tokens}", spec, (0, 1, 2), self.now)
        except UsageError:
            pass  # its script has ended

    def end_task(self, a: int, b: int) -> None:
        step = self._step(a)
        if step is not None:
            task = step.tasks[b % len(step.tasks)]
            self._hear(task.key, WitnessRecord(task.key, 5, ExitStatus(b % 2), self.now, 1.0))

    def read_generated(self, a: int, b: int) -> None:
        if self.reading:
            more = FlowSpec("more", (JobSpec(f"m{b % 3}", TRUE, hold=bool(a % 2)),))
            self.reading.pop(a % len(self.reading))(more if b % 4 else "it can't be read", self.now)
            self.machine.tick(self.now)

    def kill_step(self, a: int, b: int) -> None:
        step = self._step(a)
        if step is not None:
            self.machine.kill_step(step, "me", self.now)


STIMULI: tuple[Callable[[World, int, int], None], ...] = (
    World.submit, World.commit, World.wait, World.begin, World.end, World.vanish, World.refuse, World.cancel,
    World.cancel_run, World.go_on_cancelling, World.hold, World.release, World.suspend, World.stand_still,
    World.requeue, World.change, World.retry, World.replace_flow, World.begin_step, World.end_task, World.kill_step,
    World.read_generated,
)  # fmt: skip
USUAL = (World.submit, World.commit, World.wait, World.begin, World.end, World.begin_step, World.read_generated)


# ---- what is compared -----------------------------------------------------------------------------


def of_run(run: LiveRun, by_rows: bool) -> dict[str, Any]:
    """All that the events say of a run; `by_rows`: but for what no longer matters of settled jobs."""
    names = ("state", "round", "states", "attempts", "priorities", "altered", "extra")
    seen = {name: getattr(run, name) for name in names}
    counts = [index for index in range(run.job_count) if not by_rows or run.settled_state(index) is None]
    for name in ("requests", "due", "history"):
        of_jobs = getattr(run, name)
        seen[name] = {index: of_jobs[index] for index in counts if index in of_jobs}
    seen["held"] = run.held.intersection(counts)
    if not by_rows or run.submission.flow.retry_budget is not None:
        seen["retries"] = (run.retries_used, run._retried, run._retrying)
    seen["rest"] = (run.cancelled, run.still_cancelled, run.submission, [one.flow for one in run.segments])
    return seen


def of_step(step: LiveStep) -> tuple[Any, ...]:
    tasks = [(task.key, task.verdict, task.because, task.ended_at, task.cause) for task in step.tasks]
    return (step.token, step.spec, step.first_end_at, step.kill_asked, step.state, tasks)


def of_attempt(attempt: LiveAttempt) -> dict[str, Any]:
    names = (
        "run job index attempt key request engine goes_on_from state shown_reason started_at gpus has_gpus "
        "cancel_asked requeue suspend_asked limit_asked"
    )
    seen = {name: getattr(attempt, name) for name in names.split()}
    table = attempt.steps
    begun = table is not None and (table.live or table.ended)
    seen["steps"] = (
        ({number: of_step(step) for number, step in table.live.items()}, table.ended, table.failed)
        if table is not None and begun
        else None
    )
    return seen


def snapshot(live: LiveState, by_rows: bool = False) -> dict[str, Any]:
    """What the live state says, but for what is volatile."""
    return {
        "runs": {number: of_run(run, by_rows) for number, run in live.runs.items()},
        "attempts": {key: of_attempt(attempt) for key, attempt in live.attempts.items()},
        "by_job": {job: attempt.key for job, attempt in live.by_job.items()},
        "tasks": set(live.tasks),
        "shown": live.shown,
        "next_id": live.next_id,
    }


def replayed(events: Iterable[Event]) -> LiveState:
    live = Machine(IDENTITY, Room.of(3, 2, 1 << 40), 1, capabilities_of).live
    for event in events:
        fold.apply(live, event)
    return live


def from_store(events: list[Event]) -> LiveState:
    """As `recovery` makes it: the rows of settled jobs stand for their events."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "aver.db"
        writer = Writer.open(path)
        writer.commit(events)
        machine = Machine(IDENTITY, Room.of(3, 2, 1 << 40), writer.next_id(), capabilities_of)
        writer.close()
        reader = Reader.open(path)
        assert reader is not None
        with reader:
            for number in sorted({event.run for event in events}):
                replay_run(machine.live, reader, number)
        return machine.live


STORY = st.lists(
    st.tuples(st.one_of(st.sampled_from(USUAL), st.sampled_from(STIMULI)), st.integers(0, 9), st.integers(0, 9)),
    max_size=60,
)


def live_through(story: list[tuple[Callable[[World, int, int], None], int, int]]) -> World:
    world = World()
    for stimulus, a, b in story:
        world.now += 0.5
        stimulus(world, a, b)
    return world


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STORY)
def test_the_live_state_is_a_fold_of_its_events(
    story: list[tuple[Callable[[World, int, int], None], int, int]],
) -> None:
    """After any stimulus of any story, replaying the events so far gives the state that lives; the plan agrees."""
    world = World()
    for stimulus, a, b in story:
        world.now += 0.5
        stimulus(world, a, b)
        assert snapshot(replayed(world.events())) == snapshot(world.machine.live)
        for run in world.machine.runs.values():
            assert [run.plan.state(index) for index in range(run.job_count)] == [
                run.settled_state(index) for index in range(run.job_count)
            ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STORY, st.data())
def test_any_prefix_of_the_events_is_a_state(
    story: list[tuple[Callable[[World, int, int], None], int, int]], data: st.DataObject
) -> None:
    """A crash may come between any two events: the rows of settled jobs make the same state as all events."""
    events = live_through(story).events()
    prefix = events[: data.draw(st.integers(0, len(events)))]
    if prefix:
        assert snapshot(from_store(prefix), by_rows=True) == snapshot(replayed(prefix), by_rows=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STORY)
def test_what_follows_follows_once(story: list[tuple[Callable[[World, int, int], None], int, int]]) -> None:
    """Advancing a state that was advanced decides nothing more, and starts nothing more."""
    machine = live_through(story).machine
    before = (len(machine.out.events), len(machine.out.controls), len(machine.out.starts), len(machine.packer))
    machine.advance(2000.0)
    machine.advance(2000.0)
    assert (len(machine.out.events), len(machine.out.controls), len(machine.out.starts), len(machine.packer)) == before


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STORY, st.booleans())
def test_nothing_of_a_cancelled_run_begins(
    story: list[tuple[Callable[[World, int, int], None], int, int]], has_crashed: bool
) -> None:
    """However far the cancellation has come, also after a restart: nothing is planned, and all are settled at last."""
    world = live_through([(World.submit, 6, 0), *story])
    for run in world.machine.runs.values():
        cancel.cancel_run(world.machine, run, "me", world.now, at_once=True)
    world.commit()
    machine = world.machine
    if has_crashed:
        machine = Machine(IDENTITY, Room.of(3, 2, 1 << 40), 1, capabilities_of)
        for event in world.events():
            fold.apply(machine.live, event)
        for run in list(machine.runs.values()):
            machine.take_up(run, world.now)
    left = list(machine.by_job)
    while machine.live.cancelling:
        machine.tick(world.now + 100)
        machine.schedule(world.now + 100)
        assert set(machine.by_job) <= set(left)
        machine.go_on_cancelling(world.now + 100, most=3)
    for run in machine.runs.values():
        pending = [index for index in range(run.job_count) if run.settled_state(index) is None]
        assert pending == cancellation.begun(machine.live, run)


def test_a_move_that_the_table_does_not_have_is_refused() -> None:
    """For every pair of states: apply raises where the table has no such move, and only there."""
    for before in State:
        for after in State:
            world = World()
            world.submit(0, 0)
            live = world.machine.live
            live.runs[1].states[0] = before
            event = JobMoved(1.0, 1, 1, after, "None")
            if before is after or after in MOVES[before]:
                fold.apply(live, event)
                assert live.runs[1].states == [after]
            else:
                with pytest.raises(IllegalMove, match=f"from {before} to {after}"):
                    fold.apply(live, event)


def test_an_attempt_never_goes_back_to_the_queue() -> None:
    """A job may wait again after it ran; the attempt may not."""
    world = World()
    world.submit(0, 0)
    world.commit()
    world.begin(0, 0)
    with pytest.raises(IllegalMove, match=r"attempt .* from RUNNING to PENDING"):
        fold.apply(world.machine.live, Observed(1.0, 1, 1, 1, "test", "", State.PENDING, "Priority"))


def test_a_wrong_move_is_logged_and_applied_where_that_is_asked_for() -> None:
    """The coordinator's program goes on: the store derives the same from the event, and jobs don't suffer."""
    world = World()
    world.submit(0, 0)
    live = world.machine.live
    told: list[str] = []
    live.on_illegal_move = told.append
    fold.apply(live, JobMoved(1.0, 1, 1, State.SKIPPED, "None"))
    fold.apply(live, JobMoved(1.0, 1, 1, State.FAILED, "None"))
    assert told == ["job 1 moved from SKIPPED to FAILED"]
    assert live.runs[1].states == [State.FAILED]


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of a design page."""
    text = (Path(__file__).parents[2] / "docs" / "design" / page).read_text().partition(heading)[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_lists_what_persons_may_ask_for() -> None:
    """The words of docs/design/coordinator.md are those that change the state."""
    words = [word.strip(" `") for row in rows("coordinator.md", "## Live state") for word in row[0].split(",")]
    assert sorted(words) == sorted(fold.WORDS)


def test_the_page_lists_the_phases() -> None:
    """In the order of the union."""
    named = [row[0] for row in rows("states.md", "## Phases of an attempt")]
    assert named == [phase.__name__ for phase in get_args(Phase)]
