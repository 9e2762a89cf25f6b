"""What a user asks for: flows, jobs and what each may use.

Frozen data, checked by `spec` before it gets here. A matrix is one JobSpec with many
members; members are made by `plan.matrix`, never stored in a flow.
"""

from __future__ import annotations

from enum import StrEnum
from math import ceil

from aver.model.record import Record
from aver.model.slurm_names import slurm_document
from aver.model.slurm_options import SlurmOptions
from aver.model.states import State


class Request(Record):
    """What one attempt may use. None: unlimited. CPUs have at most three decimals; 0 takes none of the machine's."""

    cpus: int | float = 1
    gpus: int = 0
    mem_bytes: int | None = None
    time_s: int | None = None

    @property
    def whole_cpus(self) -> int:
        """CPUs for those who count whole ones: rounded up, at least 1."""
        return max(1, ceil(self.cpus))


PoolShares = tuple[tuple[str, int], ...]  # names of pools, and how much of each


class Scope(StrEnum):
    """Whom a warning signal is for."""

    ALL = "all"  # every process of the job
    PROGRAM = "program"  # the same, but for a shell that started the program and does not trap the signal
    SCRIPT = "script"  # the batch script alone (`B:` in Slurm)
    STEPS = "steps"  # the steps, not the script (Slurm without `B:`)


class WarningSignal(Record):
    signal: int
    lead_s: int
    scope: Scope = Scope.PROGRAM


class Argv(Record, tag=True, tag_field="is"):
    """A command as it is, with no shell. `warm`: the command of a server that can fork it, if an engine has one."""

    args: tuple[str, ...]
    warm: tuple[str, ...] = ()


class Script(Record, tag=True, tag_field="is"):
    """A batch script, kept as it was when it was submitted, and its arguments."""

    text: str
    args: tuple[str, ...] = ()


class Shell(Record, tag=True, tag_field="is"):
    """The text of `run:`, given to a shell; `{name}` of a matrix is replaced, quoted."""

    text: str
    shell: tuple[str, ...] = ("bash", "-eo", "pipefail")


Command = Argv | Script | Shell


class AfterKind(StrEnum):
    """How a job waits for others that it did not come with, by their numbers (Slurm's --dependency)."""

    AFTER = "after"
    AFTEROK = "afterok"
    AFTERANY = "afterany"
    AFTERNOTOK = "afternotok"
    AFTERCORR = "aftercorr"
    SINGLETON = "singleton"


class After(Record):
    """One term. `jobs` are numbers; the second is an array index, or None for the whole."""

    kind: AfterKind
    jobs: tuple[tuple[int, int | None], ...] = ()
    delay_s: int = 0


class Afters(Record):
    """All terms, or with `is_any` one of them. `ends_if_never`: CANCELLED rather than pending for ever."""

    terms: tuple[After, ...]
    is_any: bool = False
    ends_if_never: bool = False


class Outcome(StrEnum):
    """How a need must end for its dependent to run."""

    SUCCESS = "success"
    FAILURE = "failure"
    ANY = "any"


class Need(Record):
    """One edge: a job of the same flow by its name, its address or a glob, and how it must end.

    `states`, when not empty, is the exact list of accepted states and replaces `outcome`.
    """

    job: str
    outcome: Outcome = Outcome.SUCCESS
    states: tuple[State, ...] = ()


class Needs(Record):
    """All of `all_of`, and one of each group of `any_of`."""

    all_of: tuple[Need, ...] = ()
    any_of: tuple[tuple[Need, ...], ...] = ()


class Condition(StrEnum):
    """`if:` of a job."""

    NEEDS = "needs"  # its needs ended as their edges say
    ALWAYS = "always"  # a finisher: its needs are settled, however they ended
    FAILURE = "failure"  # one of its needs (or of theirs) failed


class RetryRule(Record):
    """`retry:` - max further attempts, and on what."""

    max: int
    states: tuple[State, ...] = ()
    codes: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    grow_mem: float = 1.0
    grow_time: float = 1.0
    mem_ceiling_bytes: int | None = None
    time_ceiling_s: int | None = None
    backoff_s: float = 0.0
    backoff_factor: float = 2.0


class CheckpointRule(Record):
    """After its warning, ending with one of `codes` means "to be continued", up to `rounds` times."""

    codes: tuple[int, ...] = (0,)
    rounds: int = 100


class Matrix(Record):
    """Named axes. `zip` pairs them; otherwise their product. Values are kept as text."""

    axes: tuple[tuple[str, tuple[str, ...]], ...]
    zip: bool = False
    include: tuple[tuple[tuple[str, str], ...], ...] = ()
    exclude: tuple[tuple[tuple[str, str], ...], ...] = ()
    max_parallel: int | None = None


class Streams(Record):
    """Patterns of the job's files. None: stdin empty, stdout the default, stderr as stdout.

    `log_folder` is where a stdout that has no name is; empty: in the folder that the job was submitted from.
    """

    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    append: bool = False
    log_folder: str = ""


CONTAINER = "AVER_CONTAINER"  # the variable of a job in a container: who runs it
DOCKER = "docker"


class Container(Record):
    """The image that the job runs in, and who runs it: podman, apptainer or docker."""

    image: str
    engine: str = "podman"
    mounts: tuple[str, ...] = ()  # paths that are seen inside beside the job's folder: /data, /data:ro, /here:/there
    options: tuple[str, ...] = ()  # further words for the engine

    @property
    def is_of_daemon(self) -> bool:
        """Whether a daemon starts the job's processes, so that nobody here sees what they use."""
        return self.engine == DOCKER


class Setup(Record):
    """What the job runs in: environment modules, a conda environment, a Python venv, a container."""

    modules: tuple[str, ...] = ()
    conda: str | None = None
    venv: str | None = None
    container: Container | None = None


class JobSpec(Record):
    name: str
    command: Command
    request: Request = Request()
    needs: Needs = Needs()
    condition: Condition = Condition.NEEDS
    matrix: Matrix | None = None
    folder: str | None = None  # relative to the run's folder
    streams: Streams = Streams()
    env: tuple[tuple[str, str], ...] = ()
    warning: WarningSignal | None = None
    kill_wait_s: float | None = None
    retry: RetryRule | None = None
    checkpoint: CheckpointRule | None = None
    oom_warns: bool = False
    background: bool = False
    generates: str | None = None
    inputs: tuple[str, ...] = ()  # that must be there when it starts
    optional_inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()  # that must be there when it has completed
    optional_outputs: tuple[str, ...] = ()
    clean: bool = False  # a failed attempt leaves none of its outputs
    hold: bool = False
    begin_at: float | None = None
    deadline_at: float | None = None
    priority: int = 0
    comment: str | None = None
    ignored: tuple[str, ...] = ()  # options that mean nothing on the engine, said once
    after: Afters | None = None
    has_streams: bool = False  # its standard streams are descriptors that the submitter hands over
    slurm: SlurmOptions | None = None  # of a batch script, and of jobs from Slurm's commands
    engine: str | None = None  # None: as its run's submission says
    slurm_options: tuple[str, ...] = ()  # words for sbatch, on a cluster
    slurm_requeues: bool = False  # the cluster starts it again by itself when it loses or evicts it
    requeue: bool | None = None  # tried again when it was lost; None: on a cluster, and here as the settings say
    step_warning: WarningSignal | None = None  # in an allocation: before the step's limit, whichever that is
    host: str | None = None  # of the cluster, reached through ssh; None: as its run's submission says
    params: tuple[tuple[str, str], ...] = ()  # those of the flow's whose names stand in its texts
    tags: tuple[str, ...] = ()
    pools: PoolShares = ()  # what it takes of them while it is active
    setup: Setup = Setup()

    @property
    def starts_by(self) -> float | None:
        """When its deadline leaves it less time than it needs at least (--time-min): later it does not start."""
        if self.deadline_at is None or self.slurm is None:
            return self.deadline_at
        return self.deadline_at - (self.slurm.time_min_s or 0)

    @property
    def read_files(self) -> tuple[str, ...]:
        return self.inputs + self.optional_inputs

    @property
    def written_files(self) -> tuple[str, ...]:
        return self.outputs + self.optional_outputs

    @staticmethod
    def read_older(document: dict[str, object]) -> dict[str, object]:
        """A stored document as this version writes it, of one that may be from an earlier version."""
        if "facts" not in document:
            return document
        slurm = slurm_document(document)
        rest = {name: value for name, value in document.items() if name != "facts"}
        return rest if slurm is None else {**rest, "slurm": slurm}


class StepSpec(Record):
    """One `srun` inside a job."""

    name: str
    args: tuple[str, ...]
    folder: str
    tasks: int = 1
    cpus_per_task: int = 1
    mem_bytes: int | None = None
    time_s: int | None = None
    warning: WarningSignal | None = None
    is_exact: bool = False  # takes just the cpus that it asks for; otherwise all of the job's
    is_overlapping: bool = False  # takes none
    kill_on_bad_exit: bool = False
    wait_s: int | None = None  # after the first task's end the others have this long; None: for ever
    stdin: str | None = None  # patterns; None: the descriptors that came with the request
    stdout: str | None = None
    stderr: str | None = None
    append: bool = False
    umask: int = 0o022
    is_open: bool = False  # nobody said how many tasks it has: `tasks` are those that were heard of
    limits: tuple[tuple[int, int], ...] = ()  # (resource, soft limit) where srun's differ from those of its job


class NotifyOn(StrEnum):
    """What a command of the user is told."""

    SETTLED = "settled"  # a run is settled
    FAILED = "failed"  # a job is settled and did not complete; one that was only skipped is none
    EVERY = "every"  # a job is settled
    STARTED = "started"  # a job has begun
    RUN_FAILED = "run-failed"  # a run is settled and did not complete


class NotifyRule(Record):
    """`notify:` - a command that gets the verdict as JSON on its stdin, or a receiver (`model.notify_target`)."""

    on: NotifyOn
    command: tuple[str, ...]
    timeout_s: float = 30.0
    attempts: int = 5
    to: str = ""  # a receiver, in place of a command


class FlowSpec(Record):
    name: str
    jobs: tuple[JobSpec, ...]
    max_parallel: int | None = None
    retry_budget: int | None = None
    is_single: bool = False  # one script or command: the run and its job have the same number
    notify: tuple[NotifyRule, ...] = ()
    sync: tuple[str, ...] = ()  # folders that are brought to a cluster's host and back
    sync_exclude: tuple[str, ...] = ()  # patterns of rsync
    params: tuple[tuple[str, str], ...] = ()  # with the values that they had at submission
    unselected: tuple[str, ...] = ()  # jobs of the file that are not in this run
    defaults: JobSpec | None = None  # what jobs that are generated have by default: a job without a name and a command
    included: tuple[str, ...] = ()  # further files that its jobs are from, absolute


class Origin(Record):
    """Who submitted, from where, and what the job inherits. Environment values are not here."""

    user: str
    uid: int
    host: str
    folder: str
    umask: int
    limits: tuple[tuple[int, int, int], ...] = ()  # (resource, soft, hard), as getrlimit has them
    secrets: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # what was typed
    file: str | None = None  # the flow's file, absolute; `aver reinit` reads it again


class Allocation(Record):
    """What is asked of a cluster for a whole run, whose jobs are then steps in it."""

    words: tuple[str, ...]  # for sbatch
    count: int = 1  # so many, one after the other
    headroom_s: int = 120  # at its end no step runs for so long


class Submission(Record):
    flow: FlowSpec
    origin: Origin
    engine: str = "local"  # of jobs that name none
    allocation: Allocation | None = None  # then jobs on the engine `allocation` run in these
    host: str = ""  # of jobs on a cluster that name none; empty: this machine has its commands
    key: str = ""  # the submitter's own: the same key is the same run
    content: str = ""  # a digest of what was submitted with this key, made by the coordinator
    max_parallel: int | None = None  # jobs of this run that may be active at once; the flow's own limit holds too
    since: int | None = None  # the run that it was compared with
    taken: tuple[tuple[int, int], ...] = ()  # jobs that are not run: place in this run, number of who did the work
