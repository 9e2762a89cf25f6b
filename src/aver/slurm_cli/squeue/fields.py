"""The fields of squeue: what each letter of `-o` and each name of `-O` shows, of jobs and of steps."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.exit_text import UNKNOWN
from aver.model.slurm_names import CLUSTER
from aver.slurm_cli import texts, words
from aver.slurm_cli.settings import is_since
from aver.slurm_cli.table.placement import contiguous, min_cpus, min_tmp_disk, over_subscribe
from aver.slurm_cli.texts import NULL, clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from aver.slurm_cli.facts import JobFacts

    Field = tuple[str, Callable[[Any], object]]

NA = "N/A"


def _compact(job: JobFacts) -> str:
    return words.short_state(job.queue_state)


class StepFacts:
    """A running step of a job, or its batch script."""

    def __init__(
        self, job: JobFacts, label: str, name: str, tasks: int, started_at: float, limit_s: int | None
    ) -> None:
        self.job = job
        self.label = label
        self.name = job.book.shown(name)
        self.tasks = tasks
        self.started_at = started_at
        self.limit_s = limit_s

    @property
    def id_text(self) -> str:
        return f"{self.job.id_text}.{self.label}"

    @property
    def elapsed_s(self) -> float:
        """Without the time in which its job was suspended."""
        now = self.job.book.now
        return max(0.0, now - self.started_at - self.job.suspended_within(self.started_at, now))


def _constant(value: str) -> Callable[[Any], object]:
    return lambda _: value


def _nodes_or_reason(job: JobFacts) -> str:
    if job.is_pending or job.state in ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "NODE_FAIL", "BOOT_FAIL"):
        return f"({_reason(job)})"
    return job.node


def _reason(job: JobFacts) -> str:
    """squeue writes the name of a signal with spaces, scontrol and sacct with underscores."""
    return job.reason.replace("_", " ") if job.reason.startswith("RaisedSignal:") else job.reason


def _time_left(job: JobFacts) -> str:
    if job.limit_s is None:
        return "UNLIMITED"
    left = job.limit_s - int(job.elapsed_s)
    return clock(left) if left >= 0 or job.is_settled else "INVALID"


def _derived(job: JobFacts) -> object:
    if is_since("23.02"):
        return job.derived_text
    return UNKNOWN if job.derived is None else job.derived


def _exit_number(job: JobFacts) -> object:
    """`code:signal` since 23.02; 22.05 prints the raw wait status as a number."""
    if is_since("23.02"):
        return job.exit_text
    if job.row.exit is None:
        return UNKNOWN if job.exit_text == UNKNOWN else 0
    return job.row.exit


def _pending_s(job: JobFacts) -> int:
    until = job.row.started_at if job.has_run else job.book.now
    return max(0, int((job.book.now if until is None else until) - job.submitted_at))


def _gres(job: JobFacts) -> str:
    return f"gres:{job.text('gres')}" if job.named.get("gres") else (f"gres:gpu:{job.gpus}" if job.gpus else NA)


LETTERS: dict[str, Field] = {
    "a": ("ACCOUNT", lambda job: job.account or NULL),
    "A": ("JOBID", lambda job: job.number),
    "b": ("TRES_PER_NODE", _gres),
    "B": ("EXEC_HOST", lambda job: job.node or "n/a"),
    "c": ("MIN_CPUS", min_cpus),
    "C": ("CPUS", lambda job: job.cpus),
    "d": ("MIN_TMP_DISK", min_tmp_disk),
    "D": ("NODES", _constant("1")),
    "e": ("END_TIME", lambda job: texts.moment(job.ended_at, NA)),
    "E": ("DEPENDENCY", lambda job: job.dependency or NULL),
    "f": ("FEATURES", lambda job: job.text("features") or NULL),
    "F": ("ARRAY_JOB_ID", lambda job: job.array_job_id),
    "g": ("GROUP", lambda job: job.group),
    "G": ("GROUP", lambda job: job.gid),
    "h": ("OVER_SUBSCRIBE", over_subscribe),
    "H": ("SOCKETS_PER_NODE", _constant("*")),
    "i": ("JOBID", lambda job: job.id_text),
    "I": ("CORES_PER_SOCKET", _constant("*")),
    "j": ("NAME", lambda job: job.name),
    "J": ("THREADS_PER_CORE", _constant("*")),
    "k": ("COMMENT", lambda job: job.comment or NULL),
    "K": ("ARRAY_TASK_ID", lambda job: job.index_text or NA),
    "l": ("TIME_LIMIT", lambda job: clock(job.limit_s)),
    "L": ("TIME_LEFT", _time_left),
    "m": ("MIN_MEMORY", lambda job: job.shown_mem),
    "M": ("TIME", lambda job: clock(job.elapsed_s)),
    "n": ("REQ_NODES", lambda job: job.text("nodelist")),
    "N": ("NODELIST", lambda job: job.node),
    "o": ("COMMAND", lambda job: job.command or NULL),
    "O": ("CONTIGUOUS", contiguous),
    "p": ("PRIORITY", lambda job: f"{job.priority / 0xFFFFFFFF:.14f}"),
    "P": ("PARTITION", lambda job: job.partition),
    "q": ("QOS", lambda job: job.qos),
    "Q": ("PRIORITY", lambda job: job.priority),
    "r": ("REASON", _reason),
    "R": ("NODELIST(REASON)", _nodes_or_reason),
    "s": ("", _constant("")),
    "S": ("START_TIME", lambda job: texts.moment(job.started_at, NA)),
    "t": ("ST", lambda job: _compact(job)),
    "T": ("STATE", lambda job: job.queue_state),
    "u": ("USER", lambda job: job.user),
    "U": ("UID", lambda job: job.uid),
    "v": ("RESERVATION", lambda job: job.text("reservation") or NULL),
    "V": ("SUBMIT_TIME", lambda job: texts.moment(job.submitted_at, NA)),
    "w": ("WCKEY", lambda job: job.text("wckey") or NULL),
    "W": ("LICENSES", lambda job: job.text("licenses") or NULL),
    "x": ("EXC_NODES", lambda job: job.text("exclude")),
    "X": ("CORE_SPEC", _constant(NA)),
    "y": ("NICE", lambda job: job.named.get("nice", "0")),
    "Y": ("SCHEDNODES", _constant(NULL)),
    "z": ("S:C:T", _constant("*:*:*")),
    "Z": ("WORK_DIR", lambda job: job.workdir),
}
ALL_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # %all prints small letters first

_BY_LETTER = {
    "account": "a", "arrayjobid": "F", "arraytaskid": "K", "batchhost": "B", "command": "o", "comment": "k",
    "contiguous": "O", "cores": "I", "corespec": "X", "dependency": "E", "endtime": "e", "feature": "f",
    "groupid": "G", "groupname": "g", "jobarrayid": "i", "jobid": "A", "licenses": "W", "mincpus": "c",
    "minmemory": "m", "mintmpdisk": "d", "name": "j", "nice": "y", "nodelist": "N", "numcpus": "C", "numnodes": "D",
    "oversubscribe": "h", "partition": "P", "priority": "p", "prioritylong": "Q", "qos": "q", "reason": "r",
    "reasonlist": "R", "reqnodes": "n", "reservation": "v", "schednodes": "Y", "sct": "z", "selectjobinfo": "s",
    "sockets": "H", "starttime": "S", "state": "T", "statecompact": "t", "submittime": "V", "threads": "J",
    "timeleft": "L", "timelimit": "l", "timeused": "M", "tres-per-node": "b", "userid": "U", "username": "u",
    "wckey": "w", "workdir": "Z",
}  # fmt: skip

NAMES: dict[str, Field] = {name: LETTERS[letter] for name, letter in _BY_LETTER.items()} | {
    "accruetime": ("ACCRUE_TIME", lambda job: texts.moment(job.eligible_at, NA)),
    "admin_comment": ("ADMIN_COMMENT", _constant(NULL)),
    "allocnodes": ("ALLOC_NODES", lambda job: job.origin.get("host", "")),
    "allocsid": ("ALLOC_SID", _constant("0")),
    "associd": ("ASSOC_ID", _constant("0")),
    "batchflag": ("BATCH_FLAG", lambda job: 1 if job.is_batch else 0),
    "boardspernode": ("BOARDS_PER_NODE", _constant("0")),
    "burstbuffer": ("BURST_BUFFER", _constant(NULL)),
    "burstbufferstate": ("BURST_BUFFER_STATE", _constant(NULL)),
    "cluster": ("CLUSTER", _constant(CLUSTER)),
    "clusterfeature": ("CLUSTER_FEATURES", _constant(NULL)),
    "container": ("CONTAINER", _constant(NULL)),
    "cpus-per-task": ("CPUS_PER_TASK", lambda job: job.cpus_per_task),
    "cpus-per-tres": ("CPUS_PER_TRES", _constant(NA)),
    "deadline": ("DEADLINE", lambda job: texts.moment(job.spec.get("deadline_at"), NA)),
    "delayboot": ("DELAY_BOOT", _constant("0:00")),
    "derivedec": ("DERIVED_EC", _derived),
    "eligibletime": ("ELIGIBLE_TIME", lambda job: texts.moment(job.eligible_at, NA)),
    "exit_code": ("EXIT_CODE", _exit_number),
    "gres": ("TRES_PER_NODE", _gres),
    "hetjobid": ("HET_JOB_ID", _constant(NA)),
    "hetjobidset": ("HET_JOB_ID_SET", _constant(NA)),
    "hetjoboffset": ("HET_JOB_OFFSET", _constant(NA)),
    "lastschedeval": ("LAST_SCHED_EVAL", lambda job: texts.moment(job.submitted_at, NA)),
    "maxcpus": ("MAX_CPUS", lambda job: job.cpus),
    "maxnodes": ("MAX_NODES", _constant("1")),
    "mcslabel": ("MCSLABEL", _constant(NULL)),
    "mem-per-tres": ("MEM_PER_TRES", _constant(NA)),
    "mintime": ("TIME_MIN", _constant("0:00")),
    "network": ("NETWORK", _constant(NULL)),
    "ntperboard": ("NTASKS_PER_BOARD", _constant("0")),
    "ntpercore": ("NTASKS_PER_CORE", _constant(NA)),
    "ntpernode": ("NTASKS_PER_NODE", _constant("0")),
    "ntpersocket": ("NTASKS_PER_SOCKET", _constant(NA)),
    "numtasks": ("TASKS", lambda job: job.tasks),
    "origin": ("ORIGIN", _constant("NA")),
    "originraw": ("ORIGIN_RAW", _constant("NA")),
    "pendingtime": ("PENDING_TIME", _pending_s),
    "preempttime": ("PREEMPT_TIME", _constant(NA)),
    "prefer": ("PREFER", _constant(NULL)),
    "profile": ("PROFILE", _constant("NotSet")),
    "reboot": ("REBOOT", _constant("0")),
    "reqswitch": ("REQ_SWITCH", _constant("0")),
    "requeue": ("REQUEUE", lambda job: job.requeue),
    "resizetime": ("RESIZE_TIME", _constant(NA)),
    "restartcnt": ("RESTART_COUNT", lambda job: job.restarts),
    "siblingsactive": ("ACTIVE_SIBLINGS", _constant("NA")),
    "siblingsactiveraw": ("ACTIVE_SIBLINGS_RAW", _constant("NA")),
    "siblingsviable": ("VIABLE_SIBLINGS", _constant("NA")),
    "siblingsviableraw": ("VIALBLE_SIBLINGS_RAW", _constant("NA")),
    "sperboard": ("SOCKETS_PER_BOARD", _constant("0")),
    "stderr": ("STDERR", lambda job: job.stream("stderr")),
    "stdin": ("STDIN", lambda job: job.stream("stdin")),
    "stdout": ("STDOUT", lambda job: job.stream("stdout")),
    "system_comment": ("SYSTEM_COMMENT", lambda job: job.system_comment or NULL),
    "tres-alloc": ("TRES_ALLOC", lambda job: ",".join(f"{name}={value}" for name, value in job.tres)),
    "tres": ("TRES_ALLOC", lambda job: ",".join(f"{name}={value}" for name, value in job.tres)),
    "tres-bind": ("TRES_BIND", _constant(NA)),
    "tres-freq": ("TRES_FREQ", _constant(NA)),
    "tres-per-job": ("TRES_PER_JOB", _constant(NA)),
    "tres-per-socket": ("TRES_PER_SOCKET", _constant(NA)),
    "tres-per-task": ("TRES_PER_TASK", _constant(NA)),
    "wait4switch": ("WAIT4SWITCH", _constant("0:00")),
}

STEP_LETTERS: dict[str, Field] = {
    "A": ("TASKS", lambda step: step.tasks),
    "i": ("STEPID", lambda step: step.id_text),
    "j": ("NAME", lambda step: step.name),
    "l": ("TIME_LIMIT", lambda step: clock(step.limit_s)),
    "M": ("TIME", lambda step: clock(step.elapsed_s)),
    "N": ("NODELIST", lambda step: step.job.node),
    "P": ("PARTITION", lambda step: step.job.partition),
    "S": ("START_TIME", lambda step: texts.moment(step.started_at, NA)),
    "u": ("USER", lambda step: step.job.user),
    "U": ("UID", lambda step: step.job.uid),
}
STEP_NAMES: dict[str, Field] = {
    "arrayjobid": ("ARRAY_JOB_ID", lambda step: step.job.array_job or 0),
    "arraytaskid": ("ARRAY_TASK_ID", lambda step: step.job.array_index or NA),
    "cluster": ("CLUSTER", _constant(CLUSTER)),
    "container": ("CONTAINER", _constant(NULL)),
    "cpufreq": ("CPU_FREQ", _constant(NA)),
    "jobid": ("JOBID", lambda step: step.job.number),
    "name": STEP_LETTERS["j"],
    "network": ("NETWORK", _constant(NULL)),
    "nodes": STEP_LETTERS["N"],
    "numcpus": ("NUM_CPUS", lambda step: step.tasks),
    "numtasks": STEP_LETTERS["A"],
    "partition": STEP_LETTERS["P"],
    "resvport": ("RESERVED_PORTS", _constant(NULL)),
    "starttime": STEP_LETTERS["S"],
    "stepid": STEP_LETTERS["i"],
    "stepname": STEP_LETTERS["j"],
    "stepstate": ("STATE", _constant("RUNNING")),
    "timelimit": STEP_LETTERS["l"],
    "timeused": STEP_LETTERS["M"],
    "tres-per-step": ("TRES_PER_STEP", _constant(NA)),
    "userid": STEP_LETTERS["U"],
    "username": STEP_LETTERS["u"],
}
