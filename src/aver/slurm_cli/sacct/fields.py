"""The fields of sacct: name, width, how it is cut, and what it shows of a job's row, its batch row and its steps' rows.

What is not measured is empty, never 0.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.exit_text import UNKNOWN, slurm_exit
from aver.model.slurm_names import CLUSTER
from aver.protocol.fast_client import loads
from aver.slurm_cli import texts
from aver.slurm_cli.table.columns import CUT, TEXT, WHOLE, Column, names_in_columns, parse_columns
from aver.slurm_cli.texts import cpu_clock, full_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from aver.slurm_cli.facts import JobFacts
    from aver.store.columns import LightStep


class Units:
    """How sizes are shown."""

    def __init__(self, wanted: str | None = None, *, exact: bool = True) -> None:
        self.wanted = wanted
        self.exact = exact

    def show(self, value: float, unit: str = "") -> str:
        if not self.exact and not self.wanted and not unit:
            return str(int(value))
        return texts.size(value, unit, self.wanted, exact=self.exact)


class Row:
    """A job's row (no label), its batch row (`batch`), or a step's row."""

    def __init__(self, job: JobFacts, label: str, step: LightStep | None, units: Units) -> None:
        self.job = job
        self.label = label
        self.step = step
        self.units = units
        self.step_spec: dict[str, Any] = {} if step is None else loads(step.spec.encode())
        self.steps: list[LightStep] = []  # of a job's row
        self.earliest: float | None = None
        self.latest: float | None = None

    @property
    def is_job(self) -> bool:
        return not self.label

    @property
    def state(self) -> str:
        if self.step is not None:
            uid = self.job.step_cancelled_by(self.step)
            return _step_state(self.step) if uid is None else f"CANCELLED by {uid}"
        if self.label:
            return _batch_state(self.job)
        if self.job.row.state == "CANCELLED" and (self.job.is_requeued or self.job.is_earlier):
            return "REQUEUED"  # one that had ended before keeps its own end, as in Slurm 25.11
        by = self.job.cancelled_by
        return self.job.state if by is None else f"{self.job.state} by {by}"

    @property
    def exit(self) -> str:
        if self.step is not None:
            is_unseen = self.step.ended_at is not None and self.step.derived is None
            return UNKNOWN if is_unseen else slurm_exit(self.step.state, self.step.exit)
        if self.label and self.job.is_settled and self.job.row.exit is None and self.job.launch is None:
            return ""
        if self.is_job and self.job.is_requeued and self.job.row.state == "CANCELLED":
            return "0:0"  # it was ended to begin again: the signal is no outcome of it
        return self.job.exit_text

    @property
    def started_at(self) -> float | None:
        found = (
            self.step.started_at if self.step is not None else self.job.started_at if not self.job.is_pending else None
        )
        return found if found is None or self.earliest is None else max(found, self.earliest)

    @property
    def ended_at(self) -> float | None:
        found = self.step.ended_at if self.step is not None else self.job.row.ended_at if self.job.is_settled else None
        if self.latest is None:
            return found
        return self.latest if found is None or found > self.latest else found

    @property
    def elapsed_s(self) -> int:
        if self.earliest is not None and self.started_at is not None:
            end = self.job.book.now if self.ended_at is None else self.ended_at
            return max(0, int(end) - int(self.started_at))
        if self.step is not None:
            began, end = self.step.started_at, self.job.book.now if self.step.ended_at is None else self.step.ended_at
            return max(0, int(end - began - self.job.suspended_within(began, end)))
        return int(self.job.elapsed_s)

    @property
    def cpus(self) -> int:
        if self.step is None:
            return self.job.cpus
        return self.step.tasks * int(self.step_spec.get("cpus_per_task", 1))

    @property
    def user_s(self) -> float | None:
        return self._used("user_s")

    @property
    def system_s(self) -> float | None:
        return self._used("sys_s")

    def _used(self, name: str) -> float | None:
        if self.step is not None:
            return getattr(self.step, name)  # type: ignore[no-any-return]
        parts = [getattr(self.job.row, name), *(getattr(step, name) for step in self.steps)]
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    @property
    def cpu_s(self) -> float | None:
        return None if self.user_s is None and self.system_s is None else (self.user_s or 0) + (self.system_s or 0)

    @property
    def tasks(self) -> int:
        return 1 if self.step is None else self.step.tasks

    @property
    def peak_bytes(self) -> int | None:
        """Of the largest task; the job's own row has none, as in Slurm."""
        if self.is_job:
            return None
        return self.job.row.peak_bytes if self.step is None else self.step.peak_bytes


def _step_state(step: LightStep) -> str:
    """A step that a signal ended is CANCELLED in Slurm's accounts."""
    if step.state == "FAILED" and step.exit is not None and step.exit & 0x7F:
        return "CANCELLED"
    return {"UNVERIFIED": "CANCELLED", "SUBMITTED": "PENDING", "SETTLING": "COMPLETING"}.get(step.state, step.state)


def _batch_state(job: JobFacts) -> str:
    """The script's own end, whatever the job's state."""
    if not job.is_settled or job.ours == "OUT_OF_MEMORY":
        return job.state
    raw = job.row.exit
    if raw is None and job.launch is None and job.ours in ("COMPLETED", "FAILED"):
        return job.ours  # its exit is not known; that a signal ended it is not known either
    if raw is None:
        return "FAILED" if job.launch is not None and not job.exit_text.startswith("0:") else "CANCELLED"
    return "CANCELLED" if raw & 0x7F else "FAILED" if raw else "COMPLETED"


def _job_only(show: Callable[[JobFacts], object]) -> Callable[[Row], object]:
    return lambda row: show(row.job) if row.is_job else ""


def _job_id(row: Row) -> str:
    return row.job.id_text + (f".{row.label}" if row.label else "")


def _raw_id(row: Row) -> str:
    return str(row.job.number) + (f".{row.label}" if row.label else "")


def _name(row: Row) -> str:
    return row.job.book.shown(row.step.name) if row.step is not None else row.label or row.job.name


def _alloc_tres(row: Row) -> str:
    if row.job.is_pending or not row.job.has_run:
        return ""
    if row.step is not None:
        mem = texts.mib(row.step_spec.get("mem_bytes")) or row.job.mem_mib
        found = [("cpu", str(row.cpus)), ("node", "1")] + ([("mem", texts.size(mem, "M"))] if mem else [])
    else:
        found = [pair for pair in row.job.tres if row.is_job or pair[0] != "billing"]
    return ",".join(f"{name}={value}" for name, value in sorted(found))


def _req_tres(job: JobFacts) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(job.tres))


def waited_s(job: JobFacts) -> int | None:
    """From when it could start to its start, or to now."""
    if job.eligible_at is None:
        return None
    until = job.book.now if job.is_pending else job.started_at
    return max(0, int((job.book.now if until is None else until) - job.eligible_at))


def _waited(factor: Callable[[JobFacts], int], form: Callable[[float], object]) -> Callable[[Row], object]:
    def show(row: Row) -> object:
        waited = waited_s(row.job) if row.is_job else None
        return "" if waited is None else form(waited * factor(row.job))

    return show


def _peak(row: Row) -> object:
    return "" if row.peak_bytes is None else row.units.show(row.peak_bytes)


def _peak_mean(row: Row) -> object:
    mean = row.peak_bytes if row.step is None else row.step.peak_mean
    return (
        ""
        if mean is None or row.is_job
        else row.units.show(int(mean) if row.step is None else int(mean) // 1024 * 1024)
    )


def _peak_task(row: Row) -> object:
    if row.peak_bytes is None:
        return ""
    return 0 if row.step is None else row.step.peak_task


def _measured(show: Callable[[Row], object]) -> Callable[[Row], object]:
    """Only where something was measured, and never of the job's own row."""
    return lambda row: "" if row.is_job or row.cpu_s is None else show(row)


def _limit_minutes(job: JobFacts) -> object:
    return "UNLIMITED" if job.limit_s is None else -(-job.limit_s // 60)


def nothing(row: Row) -> object:
    return ""


FIELDS: tuple[tuple[str, int, str, Callable[[Row], object]], ...] = (
    ("Account", 10, TEXT, lambda row: row.job.account),
    ("AdminComment", 15, TEXT, nothing),
    ("AllocCPUS", 10, WHOLE, lambda row: row.cpus),
    ("AllocNodes", 10, WHOLE, lambda row: 1 if row.job.has_run else 0),
    ("AllocTRES", 10, TEXT, _alloc_tres),
    ("AssocID", 7, WHOLE, lambda row: 0),
    ("AveCPU", 10, TEXT, _measured(lambda row: full_clock((row.cpu_s or 0) / max(1, row.tasks)))),
    ("AveCPUFreq", 10, TEXT, nothing),
    ("AveDiskRead", 14, TEXT, nothing),
    ("AveDiskWrite", 14, TEXT, nothing),
    ("AvePages", 10, TEXT, nothing),
    ("AveRSS", 10, TEXT, _peak_mean),
    ("AveVMSize", 10, TEXT, nothing),
    ("BlockID", 16, TEXT, nothing),
    ("Cluster", 10, TEXT, lambda row: CLUSTER),
    ("Comment", 14, TEXT, _job_only(lambda job: job.comment)),
    ("Constraints", 19, TEXT, _job_only(lambda job: job.text("features"))),
    ("ConsumedEnergy", 14, TEXT, nothing),
    ("ConsumedEnergyRaw", 17, TEXT, nothing),
    ("Container", 19, TEXT, nothing),
    ("CPUTime", 10, WHOLE, lambda row: full_clock(row.elapsed_s * row.cpus)),
    ("CPUTimeRAW", 10, WHOLE, lambda row: row.elapsed_s * row.cpus),
    ("DBIndex", -10, WHOLE, lambda row: row.job.row.id),
    ("DerivedExitCode", 15, TEXT, _job_only(lambda job: job.derived_text)),
    ("Elapsed", 10, WHOLE, lambda row: full_clock(row.elapsed_s)),
    ("ElapsedRaw", 10, WHOLE, lambda row: row.elapsed_s),
    ("Eligible", 19, CUT, lambda row: texts.moment(row.job.eligible_at)),
    ("End", 19, CUT, lambda row: texts.moment(row.ended_at)),
    ("ExitCode", 8, TEXT, lambda row: row.exit),
    ("Extra", 14, TEXT, nothing),
    ("FailedNode", 12, TEXT, nothing),
    ("Flags", 19, TEXT, nothing),
    ("GID", 6, WHOLE, _job_only(lambda job: job.gid)),
    ("Group", 9, TEXT, _job_only(lambda job: job.group)),
    ("JobID", -12, TEXT, _job_id),
    ("JobIDRaw", -12, TEXT, _raw_id),
    ("JobName", 10, TEXT, _name),
    ("Layout", 9, TEXT, nothing),
    ("Licenses", 10, TEXT, _job_only(lambda job: job.text("licenses"))),
    ("MaxDiskRead", 12, TEXT, nothing),
    ("MaxDiskReadNode", 15, TEXT, nothing),
    ("MaxDiskReadTask", 15, TEXT, nothing),
    ("MaxDiskWrite", 12, TEXT, nothing),
    ("MaxDiskWriteNode", 16, TEXT, nothing),
    ("MaxDiskWriteTask", 16, TEXT, nothing),
    ("MaxPages", 8, TEXT, nothing),
    ("MaxPagesNode", 12, TEXT, nothing),
    ("MaxPagesTask", 14, TEXT, nothing),
    ("MaxRSS", 10, TEXT, _peak),
    ("MaxRSSNode", 10, TEXT, lambda row: "" if row.peak_bytes is None else row.job.node),
    ("MaxRSSTask", 10, TEXT, _peak_task),
    ("MaxVMSize", 10, TEXT, nothing),
    ("MaxVMSizeNode", 14, TEXT, nothing),
    ("MaxVMSizeTask", 14, TEXT, nothing),
    ("McsLabel", 12, TEXT, nothing),
    ("MinCPU", 10, TEXT, _measured(lambda row: full_clock(row.cpu_s) if row.tasks == 1 else "")),
    ("MinCPUNode", 10, TEXT, _measured(lambda row: row.job.node if row.tasks == 1 else "")),
    ("MinCPUTask", 10, TEXT, _measured(lambda row: 0 if row.tasks == 1 else "")),
    ("NCPUS", 10, WHOLE, lambda row: row.cpus),
    ("NNodes", 8, TEXT, lambda row: 1),
    ("NodeList", 15, TEXT, lambda row: row.job.node or "None assigned"),
    ("NTasks", 8, WHOLE, lambda row: "" if row.is_job else row.tasks),
    ("Partition", 10, TEXT, _job_only(lambda job: job.partition)),
    ("Planned", 10, WHOLE, _waited(lambda job: 1, full_clock)),
    ("PlannedCPU", 10, WHOLE, _waited(lambda job: job.cpus, full_clock)),
    ("PlannedCPURAW", 13, WHOLE, _waited(lambda job: job.cpus, int)),
    ("Priority", 10, TEXT, _job_only(lambda job: job.priority)),
    ("QOS", 10, TEXT, _job_only(lambda job: job.qos)),
    ("QOSREQ", 10, TEXT, _job_only(lambda job: job.text("qos"))),
    ("QOSRAW", 6, WHOLE, _job_only(lambda job: 1)),
    ("Reason", 22, TEXT, _job_only(lambda job: job.reason)),
    ("ReqCPUFreq", 10, TEXT, lambda row: "Unknown"),
    ("ReqCPUFreqGov", 13, TEXT, lambda row: "Unknown"),
    ("ReqCPUFreqMax", 13, TEXT, lambda row: "Unknown"),
    ("ReqCPUFreqMin", 13, TEXT, lambda row: "Unknown"),
    ("ReqCPUS", 8, WHOLE, lambda row: row.cpus),
    ("ReqMem", 10, TEXT, lambda row: row.units.show(row.job.mem_mib, "M") if row.is_job else ""),
    ("ReqNodes", 8, WHOLE, lambda row: 1),
    ("ReqReservation", 20, TEXT, _job_only(lambda job: job.text("reservation"))),
    ("ReqTRES", 10, TEXT, _job_only(_req_tres)),
    ("Reservation", 20, TEXT, _job_only(lambda job: job.text("reservation"))),
    ("ReservationId", 8, TEXT, nothing),
    ("Reserved", 10, WHOLE, _waited(lambda job: 1, full_clock)),
    ("Restarts", 8, WHOLE, _job_only(lambda job: job.restarts)),
    ("ResvCPU", 10, WHOLE, _waited(lambda job: job.cpus, full_clock)),
    ("ResvCPURAW", 10, WHOLE, _waited(lambda job: job.cpus, int)),
    ("SegmentSize", 11, TEXT, nothing),
    ("SLUID", 14, TEXT, _job_only(lambda job: job.sluid)),
    ("Start", 19, CUT, lambda row: texts.moment(row.started_at)),
    ("State", 10, TEXT, lambda row: row.state),
    ("StdErr", 20, TEXT, _job_only(lambda job: job.shown_stream("stderr"))),
    ("StdIn", 20, TEXT, _job_only(lambda job: job.shown_stream("stdin"))),
    ("StdOut", 20, TEXT, _job_only(lambda job: job.shown_stream("stdout"))),
    ("Submit", 19, CUT, lambda row: texts.moment(row.job.submitted_at if row.step is None else row.step.started_at)),
    ("SubmitLine", 20, TEXT, _job_only(lambda job: job.submit_line)),
    ("Suspended", 10, WHOLE, lambda row: full_clock(row.job.suspended_s)),
    ("SystemComment", 15, TEXT, _job_only(lambda job: job.system_comment)),
    ("SystemCPU", 10, TEXT, lambda row: cpu_clock(row.system_s)),
    ("Timelimit", 10, TEXT, _job_only(lambda job: full_clock(job.limit_s))),
    ("TimelimitRaw", 10, TEXT, _job_only(_limit_minutes)),
    ("TotalCPU", 10, TEXT, lambda row: cpu_clock(row.cpu_s)),
    ("TRESUsageInAve", 14, TEXT, nothing),
    ("TRESUsageInMax", 14, TEXT, nothing),
    ("TRESUsageInMaxNode", 18, TEXT, nothing),
    ("TRESUsageInMaxTask", 18, TEXT, nothing),
    ("TRESUsageInMin", 14, TEXT, nothing),
    ("TRESUsageInMinNode", 18, TEXT, nothing),
    ("TRESUsageInMinTask", 18, TEXT, nothing),
    ("TRESUsageInTot", 14, TEXT, nothing),
    ("TRESUsageOutAve", 15, TEXT, nothing),
    ("TRESUsageOutMax", 15, TEXT, nothing),
    ("TRESUsageOutMaxNode", 19, TEXT, nothing),
    ("TRESUsageOutMaxTask", 19, TEXT, nothing),
    ("TRESUsageOutMin", 15, TEXT, nothing),
    ("TRESUsageOutMinNode", 19, TEXT, nothing),
    ("TRESUsageOutMinTask", 19, TEXT, nothing),
    ("TRESUsageOutTot", 15, TEXT, nothing),
    ("UID", 6, WHOLE, _job_only(lambda job: job.uid)),
    ("User", 9, TEXT, _job_only(lambda job: job.user)),
    ("UserCPU", 10, TEXT, lambda row: cpu_clock(row.user_s)),
    ("WCKey", 10, TEXT, _job_only(lambda job: job.text("wckey"))),
    ("WCKeyID", 10, WHOLE, _job_only(lambda job: 0)),
    ("WorkDir", 20, TEXT, _job_only(lambda job: job.workdir)),
)

DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF = "jobid,state,exitcode"
LONG = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,"
    "maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed,state,"
    "exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,reqtres,alloctres,"
    "tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,tresusageinminnode,"
    "tresusageinmintask,tresusageintot,tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,"
    "tresusageouttot"
)
_SINCE_THEN = frozenset({
    "Extra", "FailedNode", "Licenses", "Planned", "PlannedCPU", "PlannedCPURAW", "QOSREQ", "ReqReservation", "Restarts",
    "SegmentSize", "SLUID", "StdErr", "StdIn", "StdOut",
})  # fmt: skip


def parse_fields(text: str) -> list[Column]:
    """`name[%[-]width],…`; a name may be cut. Raise ValueError with what is not a field."""
    return parse_columns(text, lambda name: FIELDS if name == "all" else _fitting(name))


def _fitting(name: str) -> tuple[tuple[str, int, str, Callable[[Row], object]], ...]:
    """The field of that name, or the first that begins so; those that came after 22.05 only by their whole name."""
    exact = [field for field in FIELDS if field[0].lower() == name]
    starts = [field for field in FIELDS if field[0].lower().startswith(name) and field[0] not in _SINCE_THEN]
    return tuple((exact or starts)[:1])


def help_text() -> str:
    """The names in four columns, as `--helpformat` prints them."""
    return names_in_columns(FIELDS)
