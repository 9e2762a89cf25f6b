"""What an engine is: where attempts run.

Few batched calls. An engine never sees the store and never decides an outcome: it takes
orders and gives back evidence, each with the verbatim words of its source. What it hears
without being asked comes through `heard`, when `fileno` is readable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from aver.config import Config
from aver.home import Home
from aver.model.evidence import Evidence
from aver.model.job import Request, Scope, WarningSignal
from aver.model.record import Record


class Refusals(Record):
    """What people are told who ask Aver for what only the engine's own commands do; empty: Aver does it."""

    hold: str = "handed to its engine: it can't be held any more"
    release: str = "held by its engine"
    suspend: str = ""
    limit: str = ""
    step_signal: str = ""


class Capabilities(Record):
    """What an engine does itself, and what it leaves to Aver. The defaults are those of this machine's own engine.

    Other rooms ask these, never for the engine's name.
    """

    has_queue: bool = False  # attempts wait in a queue of its own; else Aver packs them into this machine
    has_scheduler: bool = False  # a scheduler says what becomes of an attempt; the judge weighs it with the witness
    outlives_machine: bool = False  # attempts run elsewhere, and go on when this machine is restarted
    tells_steps: bool = False  # it runs steps itself, and their records tell of them; else Aver's srun asks for them
    signals_steps: bool = False  # a signal to an attempt reaches its steps; else Aver signals each task
    may_requeue: bool = False  # it may start an attempt again by itself: see `StartedAgain` and `adopt`
    may_lose_nodes: bool = False  # an attempt may be lost with its node or evicted: Aver then tries again by itself
    may_tell_late: bool = False  # evidence may come after it was settled that nobody said how it ended
    is_shared: bool = False  # others than Aver may cancel attempts
    needs_script_text: bool = False  # attempts run where this machine's files may not be: it is given the script's text
    takes_sbatch_options: bool = False  # it is given options of sbatch, hosts behind ssh, and alike orders together
    uses_allocations: bool = False  # attempts are steps of allocations of their run: it is an `Allocator`
    refusals: Refusals = Refusals()


ABSENT = Capabilities(  # of an engine that nobody registered: nothing is started anew, and nothing is guessed
    has_queue=True, has_scheduler=True, outlives_machine=True, tells_steps=True, signals_steps=True,
    may_tell_late=True, is_shared=True,
)  # fmt: skip


class ScriptText(Record):
    """A program that is text: what runs it, the text, and its arguments."""

    interpreter: tuple[str, ...]
    text: str
    args: tuple[str, ...] = ()


class Sync(Record):
    """Folders of this machine that an attempt on another host needs and writes, and what in them stays where it is."""

    run: int
    round: int
    folders: tuple[str, ...]  # absolute
    excludes: tuple[str, ...] = ()


class Order(Record):
    """One attempt, ready to run. Strings may hold surrogates for bytes that are not UTF-8."""

    key: str
    args: tuple[str, ...]
    folder: str
    env_file: str | None
    env: tuple[str, ...]  # NAME=VALUE, added to the file's
    umask: int
    limits: tuple[tuple[int, int, int], ...]
    request: Request
    stdin: str | None
    stdout: str | None
    stderr: str | None
    append: bool
    warning: WarningSignal | None
    kill_wait_s: float
    streams: tuple[int, ...] = ()  # for stdin, stdout, stderr where no file is named; the engine closes none
    job_due_s: float | None = None  # of a task: when its job's limit passes, by the monotonic clock
    job_mem_bytes: int | None = None  # of a task: its job's limit
    name: str = ""  # the job's, for people
    group: str = ""  # orders with the same one are alike in all that a scheduler sees, and may be handed over together
    script: ScriptText | None = None  # then `args` name a file on this machine, and an engine elsewhere takes this
    options: tuple[str, ...] = ()  # words for the scheduler
    requeues: bool = False  # the scheduler may start it again by itself
    deadline_at: float | None = None  # a scheduler that can't end it by then must not start it
    host: str = ""  # the cluster's, reached through ssh; empty: this machine has its commands
    sync: Sync | None = None
    run: int = 0  # in an allocation: its run's number, whose allocations these are
    step: str = ""  # likewise: the name of its step
    least_s: int = 0  # likewise: it is not started with less time left than this
    nodes: int = 1  # likewise: it has what `request` says on each of so many nodes
    has_steps: bool = False  # likewise: steps that it makes itself have what it was given
    has_tasks: bool = False  # likewise: `env` has what Slurm says of its tasks, in place of what it says of its step
    exclude: tuple[str, ...] = ()  # likewise: names of nodes that it does not run on
    env_defaults: tuple[str, ...] = ()  # NAME=VALUE, where the environment has no such name
    own_parts: int = 0  # of stdout's path, how many of the last parts Aver chose: see `JobFiles`
    files: tuple[str, ...] = ()  # KIND PATTERN each, for its witness: inputs and outputs (docs/design/witness.md)
    bare: tuple[str, ...] = ()  # `args` without the shell in them, which an engine may start if it finds the program
    warm: tuple[str, ...] = ()  # the command of a server that can fork it; an engine without servers starts `args`
    is_srun: bool = False  # alone: its step is the job, and its own memory is not the job's, where a cgroup can tell
    lane: str = ""  # of orders that are alike: one may have the room of another when that has ended
    is_behind: bool = False  # it begins when one of its lane has ended, which has the room: see `NotTaken`
    is_elsewhere: bool = False  # a daemon starts its processes: its witness can't measure what they use
    clean: str = ""  # whether its witness removes outputs of a failed attempt, and when not; empty: it keeps them
    stderr_name: str = ""  # JOB 7 ON host: its stderr gets Slurm's line when it is ended under that name; empty: none


class AllocationAsk(Record):
    """Allocations that a run wants, one after the other. The same name asks for the same ones."""

    run: int
    name: str
    words: tuple[str, ...]
    count: int
    headroom_s: int
    env_file: str | None
    folder: str
    umask: int
    host: str = ""  # of the cluster, reached through ssh; empty: this machine has its commands

    @property
    def is_extra(self) -> bool:
        """A person asked for it beside what the run was submitted with."""
        return self.name.startswith("p")


class Submitted(Record):
    """The engine has it and will run it; from now on it may have run."""

    key: str


class Rejected(Record):
    """The engine refused it, and it will never run."""

    key: str
    text: str


class Unsure(Record):
    """The engine may or may not have the attempt: ask again, do not submit again."""

    key: str
    text: str


SubmitReply = Submitted | Rejected | Unsure


class Seen(Record):
    """The engine knows this attempt; its evidence comes through `heard`."""

    key: str


class NotListed(Record):
    """The engine was asked and has no trace of it: it never started here, in this boot."""

    key: str


class CouldNotAsk(Record):
    """No answer. Moves nothing and ages nothing."""

    key: str
    text: str


ObserveReply = Seen | NotListed | CouldNotAsk


class Heard(Record):
    """One source's words about one attempt."""

    key: str
    source: str
    said: str
    evidence: Evidence
    age_s: float = 0.0  # how long ago an end was, whatever the wall clock says


class Totals(Record):
    """What the engine can give out at one time."""

    cpus: int
    gpus: int
    mem_bytes: int


UNLIMITED = Totals(cpus=1 << 40, gpus=1 << 40, mem_bytes=1 << 60)  # of a cluster, which has its own queue


class Control(Record):
    """Something to do to a running attempt."""

    key: str
    verb: str  # cancel, signal, suspend, resume, limit; of a task: time_out, job_limit
    signal: int = 0  # of a cancel: 9 is KILL at once, 0 TERM first
    scope: Scope | None = None  # None: every process
    time_s: int | None = None
    due_s: float | None = None  # of a job_limit: when the job's passes
    is_requeue: bool = False  # of a cancel: the job is to begin again


class Engine(Protocol):
    name: str
    totals: Totals

    def fileno(self) -> int:
        """Readable when `heard` has something."""

    def attach(self) -> None:
        """Find what runs already, after a restart. Called once, before anything else."""

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        """Run these now. Each has room: the caller packs."""

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        """Ask what became of these."""

    def control(self, controls: Sequence[Control]) -> None:
        """Pass these on; those whose attempt is gone already are left out silently."""

    def adopt(self, before: str, key: str) -> None:
        """The engine started `before` again by itself: from now on that is the attempt `key`."""

    def heard(self) -> list[Heard]:
        """Return what was heard since the last call, in order; never blocks."""

    def settle(self, keys: Sequence[str]) -> None:
        """Forget attempts whose ends are durable in the store."""

    def tidy(self) -> float | None:
        """Let go of what is idle; in how many seconds to call again, None: after the next evidence."""

    def close(self) -> None:
        """Let go. What runs goes on."""


class Site(Record):
    """Where an engine is made: the home, its key, the settings, and what this machine can give out."""

    home: Home
    key: str  # the first part of the keys of all its attempts
    config: Config
    totals: Totals

    def settings_of(self, engine: str) -> Mapping[str, object]:
        """The settings' table with the engine's name, as TOML has it."""
        return dict(self.config.engine_settings).get(engine, {})


class Registration(Record):
    """What an engine says of itself. `[engines]` in the settings names it as `module:attribute`.

    The module is imported by commands too: what is heavy is imported by `make` alone.
    """

    name: str
    capabilities: Capabilities
    make: Callable[[Site], Engine]
    holds_attempts: Callable[[Site], bool | None]  # left from before; None: only the engine itself can say
    check_home: Callable[[Home], None] | None = None  # blocks; an AverError says why no attempt can run from this home
    note_environment: Callable[[Home, Sequence[str]], None] | None = None  # a submitter's, before its run is stored
    shared_folder: Callable[[Home], Path] | None = None  # that its attempts see as well; None: they see the home


class Allocator(Engine, Protocol):
    """An engine whose attempts run in what a run was given beforehand."""

    def allocate(self, asks: Sequence[AllocationAsk]) -> None:
        """Take these, each once however often it is asked for."""

    def release(self, runs: Sequence[int]) -> None:
        """Release what is held for runs that are settled."""

    def open_runs(self) -> list[int]:
        """Runs that were given something and not released."""

    def is_releasing(self) -> bool:
        """Whether it must still say elsewhere that something is released: nobody else will."""
