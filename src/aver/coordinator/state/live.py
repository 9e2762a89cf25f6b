"""All that the coordinator holds in memory, as plain data; `fold.apply` and the functions beside it work on it."""

from __future__ import annotations

from collections.abc import Callable

from aver.coordinator.state.attempt import LiveAttempt, LiveStep, LiveTask
from aver.coordinator.state.dependency import Dependencies
from aver.coordinator.state.packers import Packers
from aver.coordinator.state.run import FindCapabilities, LiveRun, Roster
from aver.coordinator.state.timers import Timers
from aver.engines.api import Control
from aver.model.events import Event
from aver.model.evidence import Rules
from aver.model.job import FlowSpec
from aver.model.record import Mutable, Record, field

TakeGenerated = Callable[[FlowSpec | str, float], None]  # the batch or what is wrong with it, and the time
ReadGenerated = Callable[[LiveRun, int, TakeGenerated], None]


class Identity(Record):
    """The identity of this coordinator: the prefix of keys, this boot, this host.

    `term` is random, of this coordinator's life: a key never comes back, also where the store is put back as it was
    earlier and numbers are given again.
    """

    home: str
    boot: str
    host: str
    term: str = ""

    def new_key(self, job: int, attempt: int) -> str:
        """The key of an attempt that is planned now; from then on its event has it."""
        return f"{self.home}.{job}.{attempt}.{self.boot[:8]}" + (f"-{self.term}" if self.term else "")

    def is_of_this_boot(self, key: str) -> bool:
        return boot_of(key) == self.boot[:8]


def boot_of(key: str) -> str:
    """The boot in which an attempt with this key was planned."""
    return "".join(key.split(".")[3:4]).partition("-")[0]


class Outbox(Mutable):
    """What the loop has to carry out."""

    events: list[Event] = field(default_factory=list)
    starts: list[LiveAttempt] = field(default_factory=list)
    task_starts: list[tuple[LiveStep, LiveTask]] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    finished_runs: list[int] = field(default_factory=list)
    adoptions: list[tuple[str, str]] = field(default_factory=list)
    allocations: list[int] = field(default_factory=list)  # runs whose wishes for these are durable


class IllegalMove(Exception):
    """A job or an attempt moved in a way that the table of states does not have: a bug."""


def refuse_move(text: str) -> None:
    """What a move does that the table does not have, unless the coordinator's program says otherwise."""
    raise IllegalMove(text)


def _no_generated(run: LiveRun, index: int, then: TakeGenerated) -> None:
    then("generated jobs can't be read here", 0.0)


class LiveState:
    """The runs that are not settled, their attempts and steps, and what is to be done about them."""

    def __init__(
        self, identity: Identity, packer: Packers, next_id: int, usual: Rules,
        capabilities_of: FindCapabilities, requeues_lost: bool = False,
    ) -> None:  # fmt: skip
        self.identity = identity
        self.requeues_lost = requeues_lost  # as the settings say, of this machine
        self.usual_rules = usual  # as the settings say
        self.capabilities_of = capabilities_of
        self.next_id = next_id
        self.roster = Roster()
        self.runs = self.roster.runs
        self.attempts: dict[str, LiveAttempt] = {}  # by key
        self.by_job: dict[int, LiveAttempt] = {}
        self.steps: dict[str, LiveStep] = {}  # by token; ended ones too, while their attempt lives: srun may come back
        self.tasks: dict[str, tuple[LiveStep, LiveTask]] = {}  # by key, of steps that have not ended
        self.shown: dict[int, str] = {}  # by job: the pending reason that the store shows
        # volatile
        self.packer = packer
        self.timers = Timers()
        self.dependencies = Dependencies(self.roster, self.by_job)
        self.out = Outbox()
        self.after_commit: list[tuple[Event, Control]] = []  # controls that wait for their request to be durable
        self.touched: dict[int, None] = {}  # runs whose jobs moved: the plan is to be told
        self.ending: dict[tuple[int, int], Ending] = {}  # by job and attempt: verdicts that are not durable yet
        self.parked: dict[str, LiveAttempt] = {}  # by key: scripts that ended before their steps
        self.moving: dict[str, LiveAttempt] = {}  # by key: to be suspended or resumed, and not all witnesses did it yet
        self.waiting_steps: set[str] = set()  # keys of attempts with steps that wait for CPUs of their job
        self.ahead = 0  # attempts that are planned and have no room
        self.behind: set[str] = set()  # keys of attempts that their engine has and that wait for others to end
        self.cancelling: dict[int, None] = {}  # runs that were cancelled and have more jobs than are ended at once
        self.paces: dict[tuple[int, int], float] = {}  # by run and number of the spec: seconds of the last attempts
        self.read_generated: ReadGenerated = _no_generated  # set by the loop, which reads aside
        self.on_illegal_move: Callable[[str], None] = refuse_move

    @property
    def is_flooded(self) -> bool:
        """Attempts are so short that their engine has the next ones already: many ends are handled at once."""
        return bool(self.behind)

    def key_of(self, job: int, attempt: int) -> str | None:
        """The key of an attempt that is live, or whose end is not durable yet."""
        newest = self.by_job.get(job)
        if newest is not None and newest.attempt == attempt:
            return newest.key
        ending = self.ending.get((job, attempt))
        return None if ending is None else ending.key

    def forget(self, run: int) -> None:
        """The run is settled."""
        self.roster.remove(run)
        for key in [key for key in self.paces if key[0] == run]:
            del self.paces[key]


class Ending(Record):
    """An attempt whose verdict is on its way to the disk: its engine must not forget it before."""

    key: str
    is_open: bool  # nobody said how it ended, on a cluster: its engine goes on asking
