"""Everything that happens, as facts. The store keeps them in order and derives its tables from them.

Replaying the events of a store gives its tables again; nothing is in a table that is not in
an event. `at` is unix time in seconds.
"""

from __future__ import annotations

from aver.model.evidence import TaskCause, Verdict
from aver.model.job import FlowSpec, Request, StepSpec, Submission
from aver.model.record import Record
from aver.model.states import State


class RunSubmitted(Record):
    """A run with its jobs. Jobs are numbered from `first_job` in the order of expansion."""

    at: float
    run: int
    first_job: int
    submission: Submission


class JobsGenerated(Record):
    """A job's verified completion added jobs to its run."""

    at: float
    run: int
    job: int
    first_job: int
    flow: FlowSpec


class AttemptPlanned(Record):
    """The intent: this key is about to be handed to the engine."""

    at: float
    run: int
    job: int
    attempt: int
    key: str
    engine: str = "local"
    request: Request = Request()
    goes_on_from: str = ""  # the key of the attempt before it, where the cluster started the job again by itself


class GpusGiven(Record):
    """Which gpus the attempt gets, before it is handed over: nobody else gets them, also after a restart."""

    at: float
    run: int
    job: int
    attempt: int
    gpus: tuple[int, ...]


class Usage(Record):
    started_at: float
    elapsed_s: float | None = None
    user_s: float | None = None
    sys_s: float | None = None
    peak_bytes: int | None = None
    node: str | None = None
    is_cpu_least: bool = False  # children that nobody waited for may have used more


class Observed(Record):
    """A source said something about an attempt, and what that made of the attempt and of its job."""

    at: float
    run: int
    job: int
    attempt: int
    source: str
    said: str  # verbatim
    state: State  # the attempt's
    reason: str
    verdict: Verdict | None = None
    usage: Usage | None = None
    job_state: State | None = None  # None: the same as the attempt's
    job_reason: str | None = None
    scheduler_id: str | None = None  # when the scheduler took it: `7` or `7_3`
    allocation: int | None = None  # when it began as a step of one: the scheduler's number of that
    is_start: bool = False  # of an end: it is also the first word of the attempt's start


class StepStarted(Record):
    """A step of a running attempt is about to be handed to the engine: the intent for all its tasks."""

    at: float
    run: int
    job: int
    attempt: int
    step: int
    token: str  # of the srun that asked; the same token is the same step
    spec: StepSpec


class TaskEnded(Record):
    """A task has ended, as its witness saw it."""

    at: float
    run: int
    job: int
    attempt: int
    step: int
    task: int
    said: str  # verbatim
    verdict: Verdict
    usage: Usage | None = None
    because: bool = False  # ended by us since another task failed
    cause: TaskCause = TaskCause()
    age_s: float = 0.0  # how long ago its end was, where that counts: in a step with --wait


class StepEnded(Record):
    """The last task of a step has ended; `derived` is its raw share in DerivedExitCode, None if nobody saw its exit."""

    at: float
    run: int
    job: int
    attempt: int
    step: int
    verdict: Verdict
    derived: int | None
    first_failed: int | None = None
    srun_code: int | None = None


class JobMoved(Record):
    """A job's move that no attempt's evidence made: skipped, cancelled while pending, held, a new pending reason."""

    at: float
    run: int
    job: int
    state: State
    reason: str
    verdict: Verdict | None = None


class JobsEnded(Record):
    """Jobs with the numbers `first` to `last` are settled without a start, all with the same verdict.

    Stands for a JobMoved of each, and has as many numbers in the order of events; those who read events get these.
    """

    at: float
    run: int
    first: int
    last: int
    verdict: Verdict

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def move_of(self, job: int) -> JobMoved:
        return JobMoved(self.at, self.run, job, self.verdict.state, self.verdict.reason, self.verdict)


class PersonAsked(Record):
    """Somebody asked for something: who, when, what. Evidence for what follows. job None: the whole run."""

    at: float
    run: int
    job: int | None
    by: str
    what: str  # cancel, signal, hold, release, accept, retry, reinit, update
    detail: str = ""
    reason: str = ""  # that was given


class FileMark(Record):
    """A file as it was: enough to tell later whether its content changed."""

    path: str
    size: int
    mtime_ns: int
    sha256: str


class Fingerprinted(Record):
    """What the inputs of a completed attempt were; files that changed after it began are left out.

    `outputs` are what it wrote, without a hash; None: an earlier version did not note them.
    """

    at: float
    run: int
    job: int
    attempt: int
    files: tuple[FileMark, ...]
    outputs: tuple[FileMark, ...] | None = None


class FlowReplaced(Record):
    """A settled run goes on with other definitions of the same jobs."""

    at: float
    run: int
    by: str
    flow: FlowSpec


class PoolSized(Record):
    """Somebody set how much a pool has, for all runs; None: as the settings say. `run` is 0: it is of no run."""

    at: float
    run: int
    name: str
    size: int | None
    by: str


class RunMoved(Record):
    """The run's own state, derived from its jobs by the fold."""

    at: float
    run: int
    state: State
    round: int = 1


class RunPruned(Record):
    at: float
    run: int


Event = (
    RunSubmitted
    | JobsGenerated
    | AttemptPlanned
    | GpusGiven
    | Observed
    | StepStarted
    | TaskEnded
    | StepEnded
    | JobMoved
    | JobsEnded
    | PersonAsked
    | Fingerprinted
    | FlowReplaced
    | PoolSized
    | RunMoved
    | RunPruned
)
