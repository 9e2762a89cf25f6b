"""What each source said, and the verdict's shape.

Evidence is what one source said and when, parsed but not interpreted; the verbatim text is
kept beside it in the store. A verdict is what the judge concludes from it.
"""

from __future__ import annotations

from enum import StrEnum

from aver.model.exit import ExitStatus
from aver.model.reasons import FromRun
from aver.model.record import Record
from aver.model.states import SchedulerState, State


class ActKind(StrEnum):
    """What a witness did to its job, in the order in which it did it."""

    WARN = "warn"
    TIME = "time"  # with signal 0: its limit had passed when its witness saw it end
    JOB_TIME = "jobtime"  # of a task: its job's limit passed
    CANCEL = "cancel"
    MEMORY = "memory"
    SIGNAL = "signal"
    KILL = "kill"


class Act(Record):
    kind: ActKind
    at_s: float  # seconds after the start
    signal: int = 0
    times: int = 1  # so often the same signal was sent by request
    last_s: float | None = None  # the last of several
    reached: int | None = None  # of a warning: so many processes got it; None: nobody counted
    blocked: int = 0  # of a warning: so many had it blocked, and were not seen to take it
    unseen: int = 0  # of a warning: so many srun of Slurm got it whose tasks have no witness: who took it is not known


class MemoryWatch(StrEnum):
    """How the memory limit was watched."""

    CGROUP1 = "cgroup1"
    CGROUP2 = "cgroup2"
    SAMPLED = "sampled"
    NONE = "none"

    @property
    def is_cgroup(self) -> bool:
        return self in (MemoryWatch.CGROUP1, MemoryWatch.CGROUP2)


class LaunchFailure(Record):
    """The command never ran: which operation failed, on what, and errno."""

    operation: str  # exec, chdir, stdin, stdout, stderr, env, cgroup, fork, limit, journal, input
    errno: int
    path: str


class WitnessStart(Record):
    key: str
    pid: int
    witness_pid: int
    at: float
    watch: MemoryWatch = MemoryWatch.NONE
    due_s: float | None = None  # by the monotonic clock: when its time limit passes


class LimitMoved(Record):
    """The time limit passes at another time than its witness said before."""

    due_s: float | None  # by the monotonic clock; None: there is none, or it stands still


class LimitPassed(Record):
    """Its witness is ending it because of its time limit: the steps of the job are ended too."""

    at_s: float  # seconds after the start


class Suspended(Record):
    """Its witness has stopped all of its processes."""

    at_s: float  # seconds after the start


class Resumed(Record):
    """Its witness lets its processes go on."""

    at_s: float  # seconds after the start


class LookBegan(Record):
    """The job has ended, and looking at its outputs takes a while."""

    at_s: float  # seconds after the start


class FilesSeen(Record):
    """What was found where its outputs were to be, after its end. Lists have the first ones, counts have all."""

    at: float
    outputs: int  # patterns that were looked at
    wrong: int  # of these, required ones without a file that the attempt wrote
    written: int  # files that are not as they were before the start
    missing: tuple[str, ...] = ()  # patterns without any file
    old: tuple[str, ...] = ()  # those whose files are as they were before the start
    unseen: tuple[str, ...] = ()  # those that could not be looked at
    names: tuple[str, ...] = ()  # of files that were written, or, where some were removed, of these
    removed: int = 0


class WitnessRecord(Record):
    """The end, as the process's own parent saw it."""

    key: str
    pid: int
    exit: ExitStatus | None  # None only with a launch failure
    started_at: float
    elapsed_s: float
    suspended_s: float = 0.0
    user_s: float = 0.0
    sys_s: float = 0.0
    peak_bytes: int | None = None  # anonymous and shared memory of all processes together
    maxrss_bytes: int | None = None  # of the largest process, as the kernel counts
    watch: MemoryWatch = MemoryWatch.NONE
    limit_bytes: int | None = None
    time_limit_s: float | None = None  # as it was at the end
    over_s: float | None = None  # when it ended, by its machine's monotonic clock
    oom_kills: int = 0
    beyond_oom_kills: int = 0  # of these, for no limit of the job's: the machine, or a container around it, had no more
    inner_oom_kills: int = 0  # further ones, for the limit of a cgroup that the job itself made inside its own
    oomd_kills: int = 0  # processes that systemd-oomd says it killed in the job's cgroup
    around_oom_kills: int = 0  # of a job without a cgroup of its own: in the one that it shares; perhaps its own
    host_oom_kills: int = 0  # on the whole machine meanwhile: a hint, not a cause
    acts: tuple[Act, ...] = ()
    got: tuple[int, ...] = ()  # signals sent to the witness itself
    left_over: int = 0  # processes that the job left behind, killed
    stays: int = 0  # processes of it that could not be ended
    refused_forks: int = 0  # processes that it could not start, since it had as many as the settings allow
    is_cpu_least: bool = False  # children that nobody waited for may have used more CPU time than is known
    launch: LaunchFailure | None = None
    boot: str = ""
    step_tasks: int | None = None  # of a task on a cluster: how many its step has
    name: str = ""  # likewise: its program
    files: FilesSeen | None = None  # None: it has no outputs, or nobody could look

    @property
    def highest(self) -> tuple[int, bool] | None:
        """The most memory that it is known to have used, and whether that is of its largest process alone.

        A process's size has pages of files that count for no limit: what counts is never more than a cgroup's limit.
        """
        known = [(size, alone) for size, alone in ((self.peak_bytes, False), (self.maxrss_bytes, True)) if size]
        most = max(known, key=lambda one: one[0], default=None)
        if most is None or self.limit_bytes is None or not self.watch.is_cgroup or most[0] <= self.limit_bytes:
            return most
        return self.limit_bytes, False

    @property
    def warned(self) -> Act | None:
        return next((act for act in self.acts if act.kind is ActKind.WARN), None)


class WitnessVanished(Record):
    """The witness is gone and left no record, or what it wrote of the end can't be read."""

    at: float
    witness_pid: int | None = None
    swept: int = 0  # processes of the job that were ended afterwards
    stays: int = 0  # those that could not be ended
    oomd_kills: int = 0  # processes that systemd-oomd says it killed, the witness among them
    is_unreadable: bool = False  # the witness said more than this, but no end that can be read


class MachineRestarted(Record):
    at: float
    boot_then: str
    boot_now: str
    was_seen_running: bool = True


class Stop(StrEnum):
    """What was being ended, with everything that ran in it."""

    SHUTDOWN = "shutdown"  # the machine
    LOGOUT = "logout"  # the user's last session, and what runs below the user's service manager


class Stopping(Record):
    """The service manager said that it was stopping when the attempt ended or its witness was gone."""

    at: float
    stop: Stop


class Taken(Record):
    """The scheduler took it: its id there, such as `7` or `7_3`."""

    at: float
    id: str


class HeldBack(Record):
    """The scheduler does not take it now and may later: a limit, or it is busy."""

    at: float
    reason: str
    text: str


class CancelUnheard(Record):
    """A cancellation or signal did not reach the scheduler; a cancellation is sent again."""

    at: float
    text: str


class NotTaken(Record):
    """The engine turned out not to have it: it never began, and may be handed over again."""

    at: float


class RoomTaken(Record):
    """The attempt before it has ended, and the engine begins with this one in its room."""

    at: float


class SchedulerWord(Record):
    """A scheduler's word for a state: what it means, and as it was said."""

    state: SchedulerState
    text: str  # verbatim, such as `CANCELLED by 1001`
    by: str = ""  # who cancelled it, where the word says so


class QueueSaid(Record):
    """What the scheduler's controller says of it, while it remembers it."""

    at: float
    word: SchedulerWord
    reason: str = ""
    exit: str = ""  # as printed, whole; empty where it says none
    derived: str = ""
    started_at: float | None = None
    node: str = ""
    allocation: int | None = None  # of which it is a step, where it is one


class StartedAgain(Record):
    """The scheduler has started it again by itself: this attempt is over."""

    at: float
    restarts: int


class LeftQueue(Record):
    """The controller was asked and does not list it any more, though it once did."""

    at: float


class AccountingSaid(Record):
    """A settled row of accounting that has an end and no longer changes, and the row of its script."""

    at: float
    word: SchedulerWord | None  # None: there is no row of it, but of its allocation
    exit: str  # as printed
    batch_word: SchedulerWord | None = None  # None: there is no such row
    batch_exit: str = ""
    has_whole_codes: bool = False  # before 25.11 it takes 128 off
    started_at: float | None = None
    ended_at: float | None = None
    elapsed_s: float | None = None
    user_s: float | None = None
    sys_s: float | None = None
    maxrss_bytes: int | None = None
    node: str = ""
    allocation: str = ""  # of a step that was an attempt: its allocation's id
    allocation_word: SchedulerWord | None = None  # of its row, if the allocation is over
    allocation_ended_at: float | None = None
    is_cancelled: bool = False  # we had sent the step a cancellation while it ran


class RecordIsLate(Record):
    """The controller called it failed, and for a while its witness's record has not come."""

    at: float
    waited_s: float


class NobodySaid(Record):
    """The long wait is over: asked all the time, accounting did not say how it ended."""

    at: float
    waited_s: float
    accounting: str  # silent, or disabled


class NeverSeen(Record):
    """The attempt was submitted, and neither the queue nor accounting ever had a record of it."""

    at: float
    waited_s: float
    text: str = ""  # what the one said who was to start it


class Refused(Record):
    """The engine refused the attempt; it never started."""

    at: float
    text: str


class CancelledBefore(Record):
    """Cancelled before it started; it never ran."""

    at: float
    by: str
    before: str = "it started"
    pending_reason: str = ""  # why it was pending, where Slurm keeps that as the reason of the cancelled job


class DeadlinePassed(Record):
    """Its deadline passed before it started, or can't be kept; it never ran."""

    at: float
    text: str = ""  # the scheduler's refusal


class NeedsUnmet(Record):
    """The plan rules it out: a need did not end as required, or its condition does not apply. It never ran."""

    at: float
    reason: str
    text: str


class DependencyFailed(Record):
    """A job that it was to run after can no longer end as required (Slurm's --dependency). It never ran."""

    at: float


class Accepted(Record):
    """A person says how it ended."""

    at: float
    by: str
    exit: ExitStatus = ExitStatus()


class GeneratedRead(Record):
    """The jobs that it generated were read and added, or what was in the way of that."""

    at: float
    problem: str = ""
    is_cancelled: bool = False  # a person's cancellation was in the way


Evidence = (
    WitnessStart
    | LimitMoved
    | LimitPassed
    | Suspended
    | Resumed
    | LookBegan
    | WitnessRecord
    | WitnessVanished
    | MachineRestarted
    | Stopping
    | Taken
    | HeldBack
    | CancelUnheard
    | NotTaken
    | RoomTaken
    | QueueSaid
    | StartedAgain
    | LeftQueue
    | AccountingSaid
    | RecordIsLate
    | NobodySaid
    | NeverSeen
    | Refused
    | CancelledBefore
    | DeadlinePassed
    | NeedsUnmet
    | DependencyFailed
    | Accepted
    | GeneratedRead
)


class TaskCause(Record):
    """What a task's record says of its end beside the exit status: data for `srun`'s words."""

    launch: LaunchFailure | None = None
    oom_kills: int = 0  # by the kernel, of its processes
    was_sent: bool = False  # the signal of which it died: by request, as its warning, or through its witness
    is_warned: bool = False  # it got a warning


class Rules(Record):
    """What the job's flow says about judging it."""

    checkpoint_codes: tuple[int, ...] = ()
    oom_warns: bool = False
    fallback_completes: bool = False  # `settle.fallback: completed`: nobody said how it ended, and it counts as done
    must_write: bool = False  # it has outputs that must be there
    time_limit_s: float | None = None  # that it asked for
    overrun_fails: bool = False  # `memory_overrun: fail`: over a memory limit that could only be sampled
    deadline_at: float | None = None  # by which it must have ended
    is_step_warned: bool = False  # a task of its steps got the job's warning


class Verdict(Record):
    """How it ended, and who says so. Only the judge makes one for an attempt."""

    state: State
    exit: ExitStatus | None
    reason: str
    verified: bool
    source: str  # who attests: witness, machine, person, coordinator, accounting
    warnings: tuple[str, ...] = ()
    detail: str = ""


class TakenOver(Record):
    """An earlier run has done the work of a job, with this verdict, and nothing that it rests on changed since."""

    at: float
    origin: FromRun
    verdict: Verdict
