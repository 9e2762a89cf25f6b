"""The reason strings of verdicts and of pending jobs.

Slurm's words wherever Slurm has one. Words of our own: `WitnessVanished`, `Checkpoint`, `Retry`,
`ConditionNotMet`, `Starting`, `CannotBeEnded` (of a job that lives on after KILL),
`GeneratedJobs` (those that it generated can't be used), `MissingInput`,
`MissingOutput`, `MemoryOverrun` (over a memory limit that could only be sampled), `AllocationPending`,
`AllocationTooSmall`, `NoAllocation`, and those that name the need for which a job was SKIPPED:

    NeedFailed:prep(OUT_OF_MEMORY)    the need ended badly
    NeedUnverified:prep(UNVERIFIED)   nobody knows how the need ended
    NeedSkipped:train(SKIPPED)        the need never ran
    NeedSucceeded:prep(COMPLETED)     the need had to fail, and did not

`FromRun:12(14)` is the reason of a COMPLETED job that was not run: job 14 of run 12 did its work.

A reason of a settled job is one word, or a word, a colon and what it is about.
"""

from __future__ import annotations

from enum import StrEnum

from aver.model.record import Record
from aver.model.signals import slurm_text
from aver.model.states import State

NONE = "None"
NON_ZERO_EXIT_CODE = "NonZeroExitCode"
OUT_OF_MEMORY = "OutOfMemory"
TIME_LIMIT = "TimeLimit"
JOB_LAUNCH_FAILURE = "JobLaunchFailure"
DEPENDENCY_NEVER_SATISFIED = "DependencyNeverSatisfied"
NODE_DOWN = "NodeDown"
DEADLINE = "DeadLine"
PREEMPTED = "Preempted"
WITNESS_VANISHED = "WitnessVanished"
CHECKPOINT = "Checkpoint"
CONDITION_NOT_MET = "ConditionNotMet"
GENERATED_JOBS = "GeneratedJobs"
MISSING_INPUT = "MissingInput"
MISSING_OUTPUT = "MissingOutput"
MEMORY_OVERRUN = "MemoryOverrun"
FROM_RUN = "FromRun"

OF_FAILURES = (  # of attempts that ended badly, but for `RaisedSignal:N(Name)`: a retry rule may name each of them
    NON_ZERO_EXIT_CODE, OUT_OF_MEMORY, TIME_LIMIT, JOB_LAUNCH_FAILURE, NODE_DOWN, DEADLINE, PREEMPTED,
    WITNESS_VANISHED, MISSING_INPUT, MISSING_OUTPUT, GENERATED_JOBS, MEMORY_OVERRUN,
)  # fmt: skip
NOT_STARTED = frozenset({JOB_LAUNCH_FAILURE, MISSING_INPUT})  # of a failure: the program never ran
THOUGH_ZERO = frozenset({GENERATED_JOBS, MISSING_OUTPUT, MEMORY_OVERRUN})  # of a failure: the program exited with 0

DEPENDENCY = "Dependency"
RESOURCES = "Resources"
PRIORITY = "Priority"
BEGIN_TIME = "BeginTime"
JOB_HELD_USER = "JobHeldUser"
JOB_HELD_ADMIN = "JobHeldAdmin"
JOB_REQUEUED_HELD = "job_requeued_in_held_state"  # Slurm's word, as it writes it
JOB_SPECIAL_EXIT = "job_requeued_in_special_exit_state"  # likewise: held for somebody to look at it
REQUEUED_HELD = frozenset({JOB_REQUEUED_HELD, JOB_SPECIAL_EXIT})
JOB_ARRAY_TASK_LIMIT = "JobArrayTaskLimit"
LICENSES = "Licenses"
STARTING = "Starting"
CANNOT_BE_ENDED = "CannotBeEnded"
MAX_JOBS = "AssocMaxJobsLimit"  # as many run as the settings allow
RETRY = "Retry"
REQUEUE = "Requeue"
ALLOCATION_PENDING = "AllocationPending"
ALLOCATION_TOO_SMALL = "AllocationTooSmall"
NO_ALLOCATION = "NoAllocation"

_RAISED_SIGNAL = "RaisedSignal:"

PENDING_WORDS: dict[str, str] = {
    DEPENDENCY: "it waits for jobs that it needs",
    RESOURCES: "it waits for free cpus, memory or gpus",
    PRIORITY: "jobs before it in the queue come first",
    BEGIN_TIME: "its begin time has not come yet",
    JOB_HELD_USER: "it is held; `aver release` lets it go",
    JOB_REQUEUED_HELD: "it is to begin again when it is released; `aver release` lets it go",
    JOB_SPECIAL_EXIT: "it is held as a special exit, and begins again when it is released; `aver release` lets it go",
    JOB_ARRAY_TASK_LIMIT: "as many of its run as allowed are running already",
    LICENSES: "what it takes of a pool, or of licences, is not free",
    MAX_JOBS: "as many jobs run as the settings allow (max_running, or slurm.max_submitted)",
    RETRY: "its last attempt failed, and it will be tried again",
    REQUEUE: "the cluster lost or evicted it, and it will be tried again",
    CHECKPOINT: "it was checkpointed, and will be continued",
    STARTING: "it is being started, and a folder, a file or its program does not answer",
    ALLOCATION_PENDING: "its run's allocation waits in the cluster's queue",
    ALLOCATION_TOO_SMALL: "it asks for more than any node of its run's allocation has; `aver allocate` takes another",
    NO_ALLOCATION: "no allocation of its run is left; `aver allocate` takes another",
    DEPENDENCY_NEVER_SATISFIED: "a job that it needs can no longer end as required",
    # Slurm's own
    "PartitionConfig": "its partition, as it is set up, can't give what it asks for",
    "PartitionNodeLimit": "it asks for more nodes than its partition has or allows",
    "PartitionTimeLimit": "it asks for more time than its partition allows",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition starts no jobs now",
    "BadConstraints": "no node has what it asks for",
    JOB_HELD_ADMIN: "an operator of the cluster holds it",
    "Reservation": "its reservation has not begun",
    # how Slurm's commands fail; the job is handed over when they answer
    "NoConfiguration": "Slurm has no configuration on this machine; see `aver doctor --engine slurm`",
    "CommandNotFound": "Slurm's commands are not on this machine; see `aver doctor --engine slurm`",
    "ControllerUnreachable": "Slurm's controller does not answer; see `aver doctor --engine slurm`",
    "ControllerStandby": "Slurm's controller is in standby; see `aver doctor --engine slurm`",
    "Authentication": "Slurm's authentication (munge) does not answer; see `aver doctor --engine slurm`",
}

SHORT_WORDS: dict[str, str] = {  # for a table or a tree, beside the state
    DEPENDENCY: "waiting for its needs",
    RESOURCES: "waiting for resources",
    PRIORITY: "queued",
    BEGIN_TIME: "waiting for its begin time",
    JOB_HELD_USER: "held",
    JOB_HELD_ADMIN: "held by an operator",
    JOB_REQUEUED_HELD: "requeued and held",
    JOB_SPECIAL_EXIT: "held as a special exit",
    JOB_ARRAY_TASK_LIMIT: "waiting: max_parallel reached",
    LICENSES: "waiting for a pool",
    MAX_JOBS: "waiting: max_running reached",
    RETRY: "waiting to retry",
    REQUEUE: "waiting to run again",
    CHECKPOINT: "checkpointed",
    STARTING: "starting",
    CANNOT_BE_ENDED: "can't be ended",
    ALLOCATION_PENDING: "waiting for an allocation",
    ALLOCATION_TOO_SMALL: "allocation too small",
    NO_ALLOCATION: "no allocation left",
    JOB_LAUNCH_FAILURE: "could not start",
    WITNESS_VANISHED: "nobody saw its end",
    CONDITION_NOT_MET: "not needed: its condition does not apply",
    GENERATED_JOBS: "generated jobs can't be used",
    MISSING_INPUT: "input missing",
    MISSING_OUTPUT: "output missing",
    NODE_DOWN: "node down",
}
SAID_BY_STATE = frozenset({OUT_OF_MEMORY, TIME_LIMIT, DEADLINE, PREEMPTED, NONE, ""})


class NeedKind(StrEnum):
    FAILED = "NeedFailed"
    UNVERIFIED = "NeedUnverified"
    SKIPPED = "NeedSkipped"
    SUCCEEDED = "NeedSucceeded"


class NeedReason(Record):
    """Why a job was SKIPPED: which need, and the state in which it ended."""

    kind: NeedKind
    need: str
    state: State

    def __str__(self) -> str:
        return f"{self.kind}:{self.need}({self.state})"


class FromRun(Record):
    """Where the work of a job that was taken over was done."""

    run: int
    job: int

    def __str__(self) -> str:
        return f"{FROM_RUN}:{self.run}({self.job})"


def raised_signal(number: int) -> str:
    return f"{_RAISED_SIGNAL}{number}({slurm_text(number)})"


def need_reason(need: str, state: State) -> str:
    """The reason of a job that is SKIPPED because `need` is settled as `state`."""
    if not state.is_settled:
        raise ValueError(f"{need} is {state}: a need that is not settled skips nobody")
    return str(NeedReason(_kind_of(state), need, state))


def parse_need_reason(reason: str) -> NeedReason | None:
    """The need that a SKIPPED job's reason names, or None if it names none."""
    word, colon, rest = reason.partition(":")
    need, bracket, state = rest.rpartition("(")
    if not (colon and bracket and need and state.endswith(")")):
        return None
    try:
        return NeedReason(NeedKind(word), need, State(state[:-1]))
    except ValueError:
        return None


def parse_from_run(reason: str) -> FromRun | None:
    """The run and job that a reason `FromRun:12(14)` names; None for any other."""
    word, _, rest = reason.partition(":")
    run, _, job = rest.removesuffix(")").partition("(")
    is_one = word == FROM_RUN and run.isdecimal() and job.isdecimal() and run.isascii() and job.isascii()
    return FromRun(int(run), int(job)) if is_one else None


def counts_as_success(reason: str) -> bool:
    """Whether a SKIPPED job with this reason only had a condition that did not apply."""
    return reason == CONDITION_NOT_MET or reason.startswith(f"{NeedKind.SUCCEEDED}:")


def _kind_of(state: State) -> NeedKind:
    if state is State.COMPLETED:
        return NeedKind.SUCCEEDED
    if state is State.UNVERIFIED:
        return NeedKind.UNVERIFIED
    if state is State.SKIPPED:
        return NeedKind.SKIPPED
    return NeedKind.FAILED
