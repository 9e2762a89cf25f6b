"""Everything that is said over the coordinator's socket: requests, replies and pushes, each a type.

A message is one line of JSON. A request is `{"op": NAME, …}` with the fields of its type; the reply is
`{"ok": true, …}` with the fields of its type, or a Refusal, `{"ok": false, "error": …, "status": …}`; a push has no
`ok`. How they are read is in `decode`.

A new operation: a request and a reply here, a row in OPERATIONS, and a handler in `coordinator/requests`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from aver.model.evidence import LaunchFailure
from aver.model.job import Allocation, FlowSpec, Origin, Scope, StepSpec, Submission
from aver.model.record import Record

SOMEBODY = "somebody"


# ---- requests -------------------------------------------------------------------------------------


class Ping(Record):
    """Ask for the coordinator's process, version and load."""


class Submit(Record):
    """A new run. Descriptors that come with it are the standard streams of its only job.

    `is_again`: a run with the submission's key may be there already; then that is the reply.
    """

    submission: Submission
    env: tuple[str, ...] = ()  # NAME=VALUE
    is_again: bool = False


class Sbatch(Record):
    """A call of sbatch. Without a script, only its options are checked."""

    options: tuple[tuple[str, str], ...]  # name and text, in the order in which they count
    script: str | None = None
    name: str = ""
    path: str | None = None
    args: tuple[str, ...] = ()
    origin: Origin | None = None
    env: tuple[str, ...] = ()
    key: str = ""  # as in a submission
    is_again: bool = False


class Cancel(Record):
    """Cancel jobs and runs; with a signal, only send that. `now`: finishers of a run too. `force`: KILL at once."""

    ids: tuple[int, ...]
    by: str = SOMEBODY
    signal: int | None = None
    scope: Scope | None = None  # whom the signal is for; None: every process, those of steps too
    now: bool = False
    force: bool = False
    reason: str = ""


class Hold(Record):
    ids: tuple[int, ...]
    by: str = SOMEBODY
    reason: str = ""


class Release(Record):
    ids: tuple[int, ...]
    by: str = SOMEBODY
    reason: str = ""


class Suspend(Record):
    ids: tuple[int, ...]
    by: str = SOMEBODY
    reason: str = ""


class Resume(Record):
    ids: tuple[int, ...]
    by: str = SOMEBODY
    reason: str = ""


class PoolSize(Record):
    """Set how much a pool has for all runs; `size` None: as the settings say."""

    name: str
    size: int | None
    by: str = SOMEBODY


class Requeue(Record):
    """End a running job and begin it again; `hold`: it waits for `release`, `special`: and is shown as SPECIAL_EXIT."""

    ids: tuple[int, ...]
    by: str = SOMEBODY
    hold: bool = False
    special: bool = False


class Changes(Record):
    """New values of a job that is not settled; None: as it is."""

    time_s: int | None = None
    priority: int | None = None
    name: str | None = None
    comment: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    nice: str | None = None
    begin_at: float | None = None
    dependency: str | None = None
    throttle: int | None = None
    reservation: str | None = None
    wckey: str | None = None
    licenses: str | None = None
    features: str | None = None
    mem_bytes: int | None = None
    cpus: int | float | None = None


class Clearable(StrEnum):
    """What a job can also be without."""

    TIME_LIMIT = "time_s"
    BEGIN = "begin_at"


class Update(Record):
    ids: tuple[int, ...]
    changes: Changes = Changes()
    clear: tuple[Clearable, ...] = ()
    by: str = SOMEBODY
    steps: tuple[int, ...] | None = None  # the time limit of these running steps, not of the job; empty: of all


class Allocate(Record):
    """More allocations for a run that was submitted with one."""

    run: int
    allocation: Allocation
    by: str = SOMEBODY


class Accept(Record):
    ids: tuple[int, ...]
    by: str = SOMEBODY
    reason: str = ""


class Retry(Record):
    """New attempts of settled jobs: all of them, or with a refusal none. A run means its jobs that failed, were lost
    or cancelled."""

    ids: tuple[int, ...]
    by: str = SOMEBODY
    reason: str = ""


class Reinit(Record):
    """Run jobs of a settled run again by the flow as it is now; None: as it was."""

    run: int
    causes: tuple[tuple[int, str], ...]  # job and why
    flow: FlowSpec | None = None
    values: tuple[tuple[str, str], ...] = ()  # of the flow's sealed environment, by their digests
    inherit: tuple[str, ...] = ()  # NAME=VALUE, or NAME to remove it
    by: str = SOMEBODY


class Prune(Record):
    """Cut old logs; without a rule, as the settings say."""

    older_than_s: float | None = None
    keep_last: int | None = None
    max_bytes: int | None = None
    dry_run: bool = False
    by: str = SOMEBODY


class Watch(Record):
    """Push changes of these jobs and runs. `foreground`: a run counts as settled when its foreground jobs are."""

    ids: tuple[int, ...]
    foreground: bool = False


class Own(Record):
    """The submitter of a run that has its standard streams is back: they end together."""

    run: int


class Step(Record):
    """A step of a job. Descriptors that come with it are its standard streams. The same token is the same step."""

    key: str  # of the job's attempt, or of one of its tasks
    token: str
    spec: StepSpec
    env: tuple[str, ...] = ()


class SignalStep(Record):
    """A signal for a step's tasks; without one, end them. `by` is a person; None: its own srun."""

    key: str
    step: int
    signal: int | None = None
    by: str | None = None


class Stop(Record):
    """Leave. Jobs go on."""


Request = (
    Ping | Submit | Sbatch | Cancel | Hold | Release | Suspend | Resume | PoolSize | Requeue | Update | Allocate
    | Accept | Retry | Reinit | Prune | Watch | Own | Step | SignalStep | Stop
)  # fmt: skip


# ---- replies. Their fields have no defaults: each of them is in the document ------------------------


class Refusal(Record):
    """What was wrong, and the exit status of the command that asked."""

    error: str
    status: int


class Done(Record):
    """The request was carried out; there is nothing to add."""


class VerdictLatency(Record):
    """How many attempts took how long from their end until their verdict was durable, since the coordinator began.

    `counts` has one number more than there are bounds: of those above the last one.
    """

    bounds_s: tuple[float, ...]
    counts: tuple[int, ...]
    sum_s: float


class Pong(Record):
    pid: int
    version: str
    running: int
    pending: int
    verdicts: VerdictLatency
    problem: str  # why nothing that is decided can be stored at the moment; empty: it can


class Submitted(Record):
    run: int
    first_job: int
    jobs: int
    lower_limits: tuple[str, ...]  # hard limits of the submitter that its jobs here can't be given


class BatchSubmitted(Record):
    """What sbatch needs to answer its user."""

    run: int
    first_job: int
    jobs: int
    cpus: int
    begin_at: float | None
    partition: str
    clusters: str | None
    given: tuple[str, ...]  # options that say how to answer
    ignored: tuple[str, ...]
    lower_limits: tuple[str, ...]  # as in Submitted


class ResultCode(StrEnum):
    """What became of a request for one job or run. Only the first two say that it is as was asked."""

    DONE = "done"
    ALREADY = "already"  # it was so before
    ASKED = "asked"  # it is passed on, and not done yet
    NOT_FOUND = "not_found"
    SETTLED = "settled"  # too late
    RUNNING = "running"
    NOT_RUNNING = "not_running"
    REFUSED = "refused"  # the sentence says why

    @property
    def is_so(self) -> bool:
        return self in (ResultCode.DONE, ResultCode.ALREADY)


class Result(Record):
    id: int
    did: str  # a sentence
    code: ResultCode


class Results(Record):
    results: tuple[Result, ...]


class Allocated(Record):
    run: int


class Retried(Record):
    """The jobs that run again."""

    jobs: tuple[int, ...]


class Continued(Record):
    """A run that goes on."""

    run: int
    jobs: tuple[int, ...]
    round: int


class CutRun(Record):
    """`size_bytes` is what was freed of logs, or would be. `problems` are files that could not be cut.

    `private_files` are environments, scripts and copies of stdin that were removed, or would be.
    """

    run: int
    name: str
    why: str
    files: int
    size_bytes: int
    private_files: int
    problems: tuple[str, ...]


class Pruned(Record):
    runs: tuple[CutRun, ...]
    left_bytes: int


class Watching(Record):
    settled: tuple[int, ...]


class TaskEnd(Record):
    """How a task ended. It is a push as well."""

    task: int
    state: str | None
    reason: str | None
    detail: str
    raw: int | None  # wait status
    because: bool  # ended because of another task
    launch: LaunchFailure | None
    oom_kills: int
    was_sent: bool


class StepCode(Record):
    code: int | None  # the exit status of srun
    state: str


class StepTaken(Record):
    job: int
    step: int
    waiting: bool
    node: str
    kill_wait_s: float
    tasks: tuple[TaskEnd, ...]  # those that have ended
    files: tuple[tuple[str, str], ...]  # to be opened by srun: descriptor's name and path
    ended: StepCode | None


class Signalled(Record):
    did: str


# ---- pushes ---------------------------------------------------------------------------------------


class Changed(Record):
    """Jobs that have changed, and watched numbers that are settled now."""

    changed: tuple[int, ...]
    settled: tuple[int, ...]


class RunPruned(Record):
    pruned: int


class StepBegan(Record):
    begun: int


class StepEnd(Record):
    ended: StepCode


Push = Changed | RunPruned | StepBegan | TaskEnd | StepEnd
Answer = (
    Done | Pong | Submitted | BatchSubmitted | Results | Allocated | Retried | Continued | Pruned | Watching
    | StepTaken | Signalled
)  # fmt: skip
Message = Answer | Refusal | Push

OPERATIONS: dict[str, tuple[type[Any], type[Any]]] = {
    "ping": (Ping, Pong),
    "submit": (Submit, Submitted),
    "sbatch": (Sbatch, BatchSubmitted),
    "cancel": (Cancel, Results),
    "hold": (Hold, Results),
    "release": (Release, Results),
    "suspend": (Suspend, Results),
    "resume": (Resume, Results),
    "pool_size": (PoolSize, Done),
    "requeue": (Requeue, Results),
    "update": (Update, Results),
    "allocate": (Allocate, Allocated),
    "accept": (Accept, Results),
    "retry": (Retry, Retried),
    "reinit": (Reinit, Continued),
    "prune": (Prune, Pruned),
    "watch": (Watch, Watching),
    "own": (Own, Done),
    "step": (Step, StepTaken),
    "signal_step": (SignalStep, Signalled),
    "stop": (Stop, Done),
}
REQUESTS: dict[str, type[Any]] = {op: kinds[0] for op, kinds in OPERATIONS.items()}
_OPS = {kind: op for op, kind in REQUESTS.items()}
_PUSHES = (Changed, RunPruned, StepBegan, TaskEnd, StepEnd)


# ---- writing --------------------------------------------------------------------------------------


def request_document(request: Request) -> dict[str, Any]:
    """The request as it is sent."""
    from aver.model.codec import encode  # who only builds types, or sends documents, does not need it

    return {"op": _OPS[type(request)], **encode(request)}


def message_document(message: Message) -> dict[str, Any]:
    """A reply or a push as it is sent."""
    from aver.model.codec import encode

    document: dict[str, Any] = encode(message)
    if isinstance(message, _PUSHES):
        return document
    return {"ok": not isinstance(message, Refusal), **document}
