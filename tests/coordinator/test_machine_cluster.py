"""Attempts on a cluster, in the state machine and the loop: what is forgotten when, and what people are told."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from test_machine import ORIGIN, Turn, job

from aver.coordinator import commit_thread
from aver.coordinator.background import Later
from aver.coordinator.commit_thread import Committer
from aver.coordinator.engine_set import Engines
from aver.coordinator.guard import Guard
from aver.coordinator.loop import Loop
from aver.coordinator.order.generated_question import Question
from aver.coordinator.order.generated_reader import beside
from aver.coordinator.requests import cancel, hold, suspend, update
from aver.coordinator.requests.accept import accept
from aver.coordinator.server import Peer, Server
from aver.coordinator.state.live import Identity
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import UNLIMITED, Control, Engine, Heard, Order, Rejected, SubmitReply
from aver.engines.registry import capabilities_of
from aver.engines.slurm.cluster_set import Clusters
from aver.engines.slurm.registration import REFUSALS
from aver.engines.slurm.states import read_word
from aver.errors import CantWriteError
from aver.home import Home
from aver.model.events import Event, Observed, StepEnded, Usage
from aver.model.evidence import (
    AccountingSaid,
    CancelUnheard,
    Evidence,
    HeldBack,
    LeftQueue,
    MemoryWatch,
    NobodySaid,
    QueueSaid,
    Rules,
    Taken,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, Request, Scope, Submission
from aver.model.states import State
from aver.plan.packing import Room
from aver.protocol.lock import Lock
from aver.protocol.messages import Accept
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer
from store_replay import replay


def record(key: str, code: int = 0) -> WitnessRecord:
    return WitnessRecord(f"{key}.r0", 5, ExitStatus(code), 1000.0, 1.0, watch=MemoryWatch.CGROUP2)


class Cluster:
    """Stands for the engines of a loop: takes every order, says what it is given to say."""

    def __init__(self) -> None:
        self.to_say: list[Heard] = []
        self.orders: list[Order] = []
        self.forgotten: list[str] = []
        self.local = self

    def submit(self, orders: Sequence[Order], name: str) -> list[SubmitReply]:
        self.orders += orders
        return []

    def heard(self) -> list[Heard]:
        said, self.to_say = self.to_say, []
        return said

    def settle(self, keys: Sequence[str]) -> None:
        self.forgotten += keys

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Whatever else it is told is taken."""
        return lambda *told: None

    def say(self, key: str, *evidence: Evidence) -> None:
        self.to_say += [Heard(key, "test", "", one) for one in evidence]


class Desk:
    """A loop whose turns and commits a test makes."""

    def __init__(self, folder: Path, writer: type[Writer] = Writer) -> None:
        self.home = Home(folder)
        self.home.prepare()
        self.cluster = Cluster()
        self.poller = select.epoll()
        self.server = Server(folder, self.poller)
        self.committer = Committer(writer.open(self.home.database))
        self.machine = Machine(Identity("0123abcd", "b" * 32, "here"), Room.of(2, 0, 1 << 40), 1, capabilities_of)
        engines = cast(Engines, self.cluster)
        guard = Guard(self.home, Lock.acquire(self.home), self.server, self.committer)
        self.loop: Any = Loop(
            self.home, guard, self.server, self.poller, self.committer, engines, self.machine, 1.0, 1.0
        )

    def turn(self) -> None:
        self.loop._turn()

    def commit(self) -> None:
        """Turn until what is decided is durable and nothing follows."""
        while not self.loop._commits.is_idle or self.machine.out.events:
            if self.committer.is_busy:
                select.select([self.committer], [], [], 60)
                self.loop._finish_commit()
            self.loop._commits._last_at = 0.0
            self.turn()

    def finish_background(self) -> None:
        """Wait for what is done aside, and take it."""
        while self.loop._background.is_busy:
            select.select([self.loop._background], [], [], 60)
            self.loop._background.take()

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        reader = Reader.open(self.home.database)
        assert reader is not None
        with reader:
            yield reader

    def start(self, **fields: object) -> str:
        """A job of a cluster that was handed over; its key."""
        flow = FlowSpec("flow", (job("a", engine="slurm", **fields),), is_single=True)
        self.machine.submit(Submission(flow, ORIGIN), 1000.0)
        (self.home.path / "env").mkdir(exist_ok=True)
        self.home.env(1).write_bytes(b"")
        self.turn()
        self.commit()
        (order,) = self.cluster.orders
        return order.key

    def close(self) -> None:
        self.committer.close()
        self.server.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "home")
    yield made
    made.close()


def test_nothing_is_forgotten_before_its_verdict_is_durable(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence that comes between a verdict and its commit does not make the engine forget the attempt."""
    key = desk.start()
    monkeypatch.setattr(commit_thread, "FEW", 0)  # what is committed at once leaves no time in between
    desk.cluster.say(key, Taken(1.0, "7"), QueueSaid(2.0, read_word("RUNNING")), record(key), LeftQueue(3.0))
    desk.cluster.say(key, QueueSaid(4.0, read_word("COMPLETED"), exit="0:0"))
    desk.turn()
    assert desk.committer.is_busy, "its verdict is on its way to the disk"
    assert desk.cluster.forgotten == []
    desk.commit()
    assert set(desk.cluster.forgotten) == {key}


def handed_over(word: str) -> tuple[Turn, LiveRun]:
    """A job of which the queue says this."""
    turn = Turn()
    run = turn.submit(job("a", engine="slurm"), single=True)
    turn.commit()
    turn.started()
    for evidence in (Taken(1.0, "7"), QueueSaid(2.0, read_word(word), "Priority")):
        turn.machine.heard(Heard(turn.key(1), "test", "", evidence), turn.now)
    turn.commit()
    return turn, run


def test_the_schedulers_number_is_a_field_of_its_event() -> None:
    """Whoever asks the cluster about a job takes its number from there, not from a sentence."""
    turn = Turn()
    turn.submit(job("a", engine="slurm"), single=True)
    turn.commit()
    turn.started()
    for evidence in (Taken(1.0, "7"), QueueSaid(2.0, read_word("RUNNING"), started_at=2.0, allocation=12)):
        turn.machine.heard(Heard(turn.key(1), "test", "", evidence), turn.now)
    seen = [one for one in turn.commit() if isinstance(one, Observed)]
    assert [(one.scheduler_id, one.allocation) for one in seen] == [("7", None), (None, 12)]


def controls(turn: Turn) -> list[Control]:
    turn.commit()
    done, turn.machine.out.controls = turn.machine.out.controls, []
    return done


def test_what_slurm_does_not_do_is_not_shown_as_done() -> None:
    """Nobody but an operator suspends a job of a cluster or moves its limit: nothing changes, and that is said."""
    turn, run = handed_over("RUNNING")
    assert suspend.suspend(turn.machine, run, 0, "me", turn.now).startswith("on Slurm")
    assert update.update(turn.machine, run, 0, {"time_s": 60}, "me", turn.now) == REFUSALS.limit
    assert controls(turn) == []
    assert turn.state(1) is State.RUNNING
    assert run.request(0).time_s is None


def test_what_waits_at_slurm_is_not_called_running() -> None:
    """It can't be held from here any more, and there is nothing to signal."""
    turn, run = handed_over("PENDING")
    assert hold.hold(turn.machine, run, 0, "me", turn.now).startswith("handed to Slurm")
    assert cancel.send_signal(turn.machine, run, 0, 10, "me", turn.now).startswith("not running")
    assert controls(turn) == []


def test_a_signal_for_the_steps_reaches_them_through_slurm() -> None:
    """Slurm has the steps: the job's own key is named, with whom it is for."""
    turn, run = handed_over("RUNNING")
    for scope in (None, Scope.SCRIPT, Scope.STEPS):
        assert cancel.send_signal(turn.machine, run, 0, 10, "me", turn.now, scope) == "signalled"
        assert controls(turn) == [Control("0123abcd.1.1.bbbbbbbb", "signal", signal=10, scope=scope)]


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_record_that_comes_late_settles_what_nobody_knew(desk: Desk, is_durable: bool) -> None:
    """Accounting was silent for the long wait: the witness alone decides, also if its record comes after that."""
    key = desk.start()
    desk.cluster.say(
        key, Taken(1.0, "7"), QueueSaid(2.0, read_word("RUNNING")), LeftQueue(3.0), NobodySaid(4.0, 600.0, "silent")
    )
    desk.turn()
    if is_durable:
        desk.commit()
    desk.cluster.say(key, record(key, code=3))
    desk.turn()
    desk.commit()
    reader = Reader.open(desk.home.database)
    assert reader is not None
    with reader:
        found = reader.job(1)
        assert found is not None
        assert (found.state, found.exit) == (State.FAILED, ExitStatus(3))
        states = [stored.event.state for stored in reader.events(job=1) if isinstance(stored.event, Observed)]
    assert State.UNVERIFIED in states
    assert desk.cluster.forgotten == [key]


@pytest.mark.parametrize(
    ("late", "user_s", "peak_bytes"),
    [
        pytest.param(
            WitnessRecord("k", 5, ExitStatus(3), 1000.0, 7.0, user_s=2.0, peak_bytes=4096, watch=MemoryWatch.CGROUP2),
            2.0, 4096, id="witness",
        ),
        pytest.param(
            AccountingSaid(
                9.0, read_word("FAILED"), "3:0", read_word("FAILED"), "3:0", started_at=1000.0, ended_at=1007.0,
                elapsed_s=7.0, user_s=1.5, maxrss_bytes=2048, node="n2",
            ),
            1.5, 2048, id="accounting",
        ),
    ],
)  # fmt: skip
def test_late_evidence_brings_what_was_used(desk: Desk, late: Evidence, user_s: float, peak_bytes: int) -> None:
    """Time, cpu and memory are there with the verdict, and the end is that of the job, not of the news."""
    key = desk.start()
    ran = QueueSaid(2.0, read_word("RUNNING"), started_at=1000.0, node="n1")
    desk.cluster.say(key, Taken(1.0, "7"), ran, LeftQueue(3.0), NobodySaid(4.0, 600.0, "silent"))
    desk.turn()
    desk.commit()
    desk.cluster.say(key, late)
    desk.turn()
    desk.commit()
    reader = Reader.open(desk.home.database)
    assert reader is not None
    with reader:
        (found,) = reader.attempts(1)
        whole = reader.job(1)
    assert whole is not None
    assert (found.state, found.elapsed_s, found.user_s, found.peak_bytes) == (State.FAILED, 7.0, user_s, peak_bytes)
    assert (found.ended_at, whole.ended_at, whole.elapsed_s, found.node) == (1007.0, 1007.0, 7.0, "n1")


@pytest.mark.parametrize(("code", "state"), [(3, State.FAILED), (0, State.COMPLETED)])
def test_late_evidence_settles_what_was_only_counted_as_completed(desk: Desk, code: int, state: State) -> None:
    """`settle.fallback` is a belief: its witness's record counts when it comes, also if it says otherwise."""
    key = desk.start()
    desk.machine.runs[1].usual_rules = Rules(fallback_completes=True)
    desk.cluster.say(key, Taken(1.0, "7"), LeftQueue(2.0), NobodySaid(3.0, 600.0, "silent"))
    desk.turn()
    desk.commit()
    reader = Reader.open(desk.home.database)
    assert reader is not None
    with reader:
        believed = reader.job(1)
        assert believed is not None
        assert (believed.state, believed.exit, believed.verified) == (State.COMPLETED, None, False)
        assert desk.cluster.forgotten == []
        desk.cluster.say(key, LeftQueue(4.0), record(key, code))
        desk.turn()
        desk.commit()
        known, run = reader.job(1), reader.run(1)
    assert known is not None
    assert run is not None
    assert (known.state, known.exit, known.verified, run.state) == (state, ExitStatus(code), True, state)
    assert desk.cluster.forgotten == [key]


@pytest.mark.parametrize("text", ['{"c": {"run": "true"}}', "{"], ids=["good", "bad"])
@pytest.mark.parametrize("who", ["late", "person"])
def test_a_completion_that_is_known_late_brings_its_jobs(desk: Desk, tmp_path: Path, who: str, text: str) -> None:
    """Also when a late record or a person says that it completed, the jobs that it generated come to be, or fail it."""
    (tmp_path / "more.json").write_text(text)
    key = desk.start(generates=str(tmp_path / "more.json"))
    desk.cluster.say(key, Taken(1.0, "7"), LeftQueue(2.0), NobodySaid(3.0, 600.0, "silent"))
    desk.turn()
    desk.commit()
    with desk.reader() as reader:
        assert [job.state for job in reader.jobs(run=1)] == [State.UNVERIFIED]
    if who == "late":
        desk.cluster.say(key, record(key), LeftQueue(5.0))
        desk.turn()
    else:
        later = accept(desk.loop._requests, Peer(socket.socket()), Accept((1,), "me"), 1000.0)
        assert isinstance(later, Later)
        later.then(later.call(), 1000.0)
    desk.finish_background()
    desk.commit()
    with desk.reader() as reader:
        jobs = {job.name: job for job in reader.jobs(run=1)}
        assert reader.attempts(1)[-1].state is jobs["a"].state
    if text == "{":
        assert (list(jobs), jobs["a"].state, jobs["a"].reason) == (["a"], State.FAILED, "GeneratedJobs")
    else:
        assert (list(jobs), jobs["a"].state) == (["a", "c"], State.COMPLETED)
    assert replay(desk.home.database) == []


def test_generated_jobs_run_where_their_maker_ran() -> None:
    """A flow that is for a cluster does not start jobs on the machine of its submitter, unless they say so."""
    maker = job("a", engine="slurm", host="me@login", generates="more.yaml")
    asked = Question("more.yaml", "", 1, 2, maker.engine, maker.host, Room.of(2, 0, 1 << 40))
    found = beside(asked, FlowSpec("more", (job("b"), job("c", engine="local"), job("d", host="other"))))
    assert [(one.engine, one.host) for one in found.jobs] == [
        ("slurm", "me@login"), ("local", "me@login"), ("slurm", "other"),
    ]  # fmt: skip


def test_a_new_sentence_with_the_same_reason_is_shown() -> None:
    """Why its allocation waits may change while its reason does not; the same sentence twice is one."""
    turn = Turn()
    turn.submit(job("a", engine="slurm"))
    turn.commit()
    key = turn.key(2)
    for text in ("waits", "waits: Priority", "waits: Priority"):
        turn.machine.heard(Heard(key, "test", text, HeldBack(1.0, "AllocationPending", text)), turn.now)
    said = [event.said for event in turn.commit() if isinstance(event, Observed)]
    assert said == ["waits", "waits: Priority"]


def test_what_slurm_holds_is_released_there() -> None:
    """Aver holds back only what it has not handed over: of the rest it says who can let it go."""
    turn = Turn()
    run = turn.submit(job("a", engine="slurm"))
    turn.commit()
    for evidence in (Taken(1.0, "7"), QueueSaid(2.0, read_word("PENDING"), reason="JobHeldUser")):
        turn.machine.heard(Heard(turn.key(2), "test", "", evidence), turn.now)
    assert "scontrol release" in hold.release(turn.machine, run, 0, "me", turn.now)


def test_what_slurm_holds_after_a_requeue_is_not_held_here() -> None:
    """Slurm's word for a requeued job that is held is Slurm's business: when it lets the job go, the job goes."""
    turn, run = handed_over("PENDING")
    said = QueueSaid(3.0, read_word("PENDING"), reason="job_requeued_in_held_state")
    turn.machine.heard(Heard(turn.key(1), "test", "", said), turn.now)
    assert run.held == set()


def task_heard(key: str, task: int = 0, code: int = 0, of: int | None = 1, step: int = 0) -> Heard:
    """The record of a task, as its witness on a node left it; `of` so many."""
    name = f"{key}.s{step}.t{task}"
    left = WitnessRecord(name, 5, ExitStatus(code), 1001.0, 1.0, watch=MemoryWatch.CGROUP2, step_tasks=of, name="work")
    return Heard(name, "witness", "{}", left)


def derived(events: Sequence[Event], folder: Path) -> int | None:
    """DerivedExitCode of job 1 by these events."""
    writer = Writer.open(folder / "aver.db")
    writer.commit(events)
    writer.close()
    reader = Reader.open(folder / "aver.db")
    assert reader is not None
    with reader:
        found = reader.job(1)
    assert found is not None
    return found.derived


@pytest.mark.parametrize("word", ["", "PENDING"])
def test_what_has_a_tasks_record_has_begun(tmp_path: Path, word: str) -> None:
    """Whatever the queue says before or after: the job runs, and its DerivedExitCode stays."""
    turn, run = handed_over("PENDING")
    key = turn.key(1)
    turn.machine.heard(task_heard(key, code=7), turn.now)
    turn.commit()
    assert (turn.state(1), run.state) == (State.RUNNING, State.RUNNING)
    if word:
        turn.machine.heard(Heard(key, "squeue", "", QueueSaid(4.0, read_word(word), "Resources")), turn.now)
    turn.commit()
    assert turn.state(1) is State.RUNNING
    assert derived(turn.stored, tmp_path) == 7 << 8


def test_the_queue_still_says_when_a_job_began_whose_task_was_heard_first() -> None:
    """A task's record says that the job has begun, not when; nothing is made up until the queue says it."""
    turn, _ = handed_over("PENDING")
    key = turn.key(1)
    turn.machine.heard(task_heard(key), turn.now)
    told = QueueSaid(4.0, read_word("RUNNING"), started_at=990.0, node="n1")
    turn.machine.heard(Heard(key, "squeue", "", told), turn.now)
    turn.machine.heard(Heard(key, "squeue", "", told), turn.now)
    usages = [event.usage for event in turn.commit() if isinstance(event, Observed)]
    assert usages == [None, Usage(990.0, node="n1")]


def step_ends(events: Sequence[Event]) -> list[StepEnded]:
    return [event for event in events if isinstance(event, StepEnded)]


def hear_end(turn: Turn) -> list[Event]:
    """The job is over: its script's record, and the queue's word."""
    key = turn.key(1)
    for evidence in (record(key), LeftQueue(5.0)):
        turn.machine.heard(Heard(key, "test", "", evidence), turn.now)
    return turn.commit()


def test_a_step_whose_number_of_tasks_nobody_said_is_open_until_its_job_ends(tmp_path: Path) -> None:
    """A rank that fails after another one completed counts: the step's exit is the worst of all that were seen."""
    turn, _ = handed_over("RUNNING")
    key = turn.key(1)
    for task, code in ((0, 0), (1, 3)):
        turn.machine.heard(task_heard(key, task, code, of=None), turn.now)
    assert step_ends(turn.commit()) == []
    (ended,) = step_ends(hear_end(turn))
    assert (ended.verdict.state, ended.verdict.exit, ended.derived) == (State.FAILED, ExitStatus(3), 3 << 8)
    assert "nobody said how many tasks" in ended.verdict.detail
    assert derived(turn.stored, tmp_path) == 3 << 8
    reader = Reader.open(tmp_path / "aver.db")
    assert reader is not None
    with reader:
        assert [row.tasks for row in reader.steps(1)] == [2]
    assert replay(tmp_path / "aver.db") == []


def test_a_rank_below_one_that_was_seen_is_lost_if_it_left_nothing() -> None:
    """Rank 1 left its record, so there was a rank 0: how it ended is unknown, and so is the step's exit."""
    turn, _ = handed_over("RUNNING")
    turn.machine.heard(task_heard(turn.key(1), task=1, of=None), turn.now)
    turn.commit()
    (ended,) = step_ends(hear_end(turn))
    assert (ended.verdict.state, ended.derived) == (State.UNVERIFIED, None)


def test_a_step_ends_with_its_last_task_once_somebody_says_how_many_it_has() -> None:
    """One record does not say it, the next one does: there is nothing more to wait for."""
    turn, _ = handed_over("RUNNING")
    key = turn.key(1)
    turn.machine.heard(task_heard(key, 1, 3, of=None), turn.now)
    turn.machine.heard(task_heard(key, 0, 0, of=2), turn.now)
    (ended,) = step_ends(turn.commit())
    assert (ended.verdict.exit, ended.verdict.detail) == (ExitStatus(3), "task 1 failed first")


@pytest.mark.parametrize(
    ("said", "state", "share"),
    [
        ("0:9", State.CANCELLED, 9),
        ("3:0", State.FAILED, 3 << 8),
        ("0:125", State.OUT_OF_MEMORY, 125),
        ("0:40", State.UNVERIFIED, None),  # the number of an error of Slurm, 4008
        ("0:99", State.UNVERIFIED, None),
    ],
)
def test_a_step_without_any_record_is_known_by_the_controllers_word(said: str, state: State, share: int | None) -> None:
    """How it ended is DerivedExitCode, with Slurm's own code for memory; how many tasks it had nobody says."""
    turn, _ = handed_over("RUNNING")
    told = QueueSaid(4.0, read_word("COMPLETED"), exit="0:0", derived=said)
    turn.machine.heard(Heard(turn.key(1), "squeue", "", told), turn.now)
    (ended,) = step_ends(hear_end(turn))
    assert (ended.verdict.state, ended.derived) == (state, share)
    assert "nobody said how many tasks" in ended.verdict.detail
    assert turn.state(1) is State.COMPLETED


def test_a_lost_task_of_a_known_step_has_the_controllers_word() -> None:
    """One of two tasks left its record: DerivedExitCode is the other's, and there was no second step."""
    turn, _ = handed_over("RUNNING")
    turn.machine.heard(task_heard(turn.key(1), 0, 0, of=2), turn.now)
    told = QueueSaid(4.0, read_word("COMPLETED"), exit="0:0", derived="0:9")
    turn.machine.heard(Heard(turn.key(1), "squeue", "", told), turn.now)
    (ended,) = step_ends(hear_end(turn))
    assert (ended.step, ended.verdict.state, ended.derived) == (0, State.CANCELLED, 9)


@pytest.mark.parametrize(("codes", "of"), [({0: 3}, 2), ({0: 0}, 3)])
def test_of_lost_tasks_nobody_knows_which_one_the_controller_means(codes: dict[int, int], of: int) -> None:
    """A failure that was seen explains the word already, and of two lost tasks either may have it: no second step."""
    turn, _ = handed_over("RUNNING")
    for task, code in codes.items():
        turn.machine.heard(task_heard(turn.key(1), task, code, of=of), turn.now)
    told = QueueSaid(4.0, read_word("COMPLETED"), exit="0:0", derived="3:0")
    turn.machine.heard(Heard(turn.key(1), "squeue", "", told), turn.now)
    (ended,) = step_ends(hear_end(turn))
    assert (ended.step, ended.verdict.state, ended.derived) == (0, State.UNVERIFIED, None)


def test_a_cancellation_that_slurm_did_not_hear_is_part_of_the_story() -> None:
    """It changes no state, and is stored with its words."""
    turn, _ = handed_over("RUNNING")
    text = "scancel did not reach Slurm: Incompatible versions"
    turn.machine.heard(Heard(turn.key(1), "scancel", text, CancelUnheard(4.0, text)), turn.now)
    told = [event for event in turn.commit() if isinstance(event, Observed)]
    assert [(event.source, event.said, event.state) for event in told] == [("scancel", text, State.RUNNING)]
    assert turn.state(1) is State.RUNNING


def test_a_cluster_that_can_not_be_made_ends_nothing_else() -> None:
    """Its folders can't be made: its own orders are refused with the reason; the coordinator and the others go on."""

    def make(host: str) -> Engine:
        if host:
            raise CantWriteError("can't make the folders of the cluster's engine: /no: Read-only file system")
        return cast(Engine, Cluster())

    order = Order(
        key="k1", args=("true",), folder="/", env_file=None, env=(), umask=0o22, limits=(), request=Request(),
        stdin=None, stdout=None, stderr=None, append=False, warning=None, kill_wait_s=1.0, host="elsewhere",
    )  # fmt: skip
    (refused,) = Clusters(make, [], UNLIMITED).submit([order])
    assert isinstance(refused, Rejected)
    assert "Read-only" in refused.text
