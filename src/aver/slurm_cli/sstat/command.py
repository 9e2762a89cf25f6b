"""sstat: what the running steps of a job use at this moment. Writes nothing but its output.

Memory is that of this moment, anonymous and shared, of all processes of a task together; what is not measured is empty.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli import texts
from aver.slurm_cli.facts import Book, node_name
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.start import opened
from aver.slurm_cli.table.columns import TEXT, WHOLE, Layout, names_in_columns, parse_columns
from aver.slurm_cli.texts import full_clock
from aver.spec.getopt import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aver.client.use.now import Use
    from aver.slurm_cli.facts import JobFacts
    from aver.slurm_cli.table.columns import Field
    from aver.spec.getopt import Parsed

OPTIONS = Table(
    flags="allsteps:a helpformat:e help:h noconvert noheader:n parsable:p parsable2:P pidformat:i usage verbose:v "
    "version:V",
    values="delimiter format:o jobs:j",
    aliases="fields=format",
)
WITHOUT_MEANING = ("verbose",)
USAGE = "Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n"


class Row:
    """One running step, or the batch script."""

    def __init__(self, job: JobFacts, label: str, uses: Sequence[Use | None], *, is_exact: bool) -> None:
        self.job = job
        self.label = label
        self.uses = [one for one in uses if one is not None]
        self.tasks = len(uses)
        self.is_exact = is_exact
        self.largest = max(range(len(uses)), key=lambda task: _memory(uses[task]), default=0)
        self.laziest = min(range(len(uses)), key=lambda task: _cpu(uses[task]), default=0)
        self.most_bytes = max((use.memory_bytes for use in self.uses), default=0)
        self.least_cpu_s = min((use.cpu_s for use in self.uses), default=0.0)

    def size(self, value: float) -> str:
        return str(int(value)) if self.is_exact else texts.size(int(value) // 1024 * 1024)


def _memory(use: Use | None) -> int:
    return -1 if use is None else use.memory_bytes


def _cpu(use: Use | None) -> float:
    return float("inf") if use is None else use.cpu_s


def _used(read: Callable[[Row], object]) -> Callable[[Row], object]:
    """Only where its processes were found."""
    return lambda row: read(row) if row.uses else ""


def nothing(row: Row) -> object:
    return ""


def _mean(row: Row, of: Callable[[Use], float]) -> float:
    return sum(of(use) for use in row.uses) / len(row.uses)


_EMPTY = (
    ("AveCPUFreq", 10), ("AveDiskRead", 14), ("AveDiskWrite", 14), ("AvePages", 10), ("AveVMSize", 10),
    ("ConsumedEnergy", 14), ("ConsumedEnergyRaw", 17), ("MaxDiskRead", 12), ("MaxDiskReadNode", 15),
    ("MaxDiskReadTask", 15), ("MaxDiskWrite", 12), ("MaxDiskWriteNode", 16), ("MaxDiskWriteTask", 16), ("MaxPages", 8),
    ("MaxPagesNode", 12), ("MaxPagesTask", 14), ("MaxVMSize", 10), ("MaxVMSizeNode", 14), ("MaxVMSizeTask", 14),
    ("ReqCPUFreq", 10), ("ReqCPUFreqMin", 13), ("ReqCPUFreqMax", 13), ("ReqCPUFreqGov", 13), ("TRESUsageInAve", 14),
    ("TRESUsageInMax", 14), ("TRESUsageInMaxNode", 18), ("TRESUsageInMaxTask", 18), ("TRESUsageInMin", 14),
    ("TRESUsageInMinNode", 18), ("TRESUsageInMinTask", 18), ("TRESUsageInTot", 14), ("TRESUsageOutAve", 15),
    ("TRESUsageOutMax", 15), ("TRESUsageOutMaxNode", 19), ("TRESUsageOutMaxTask", 19), ("TRESUsageOutMin", 15),
    ("TRESUsageOutMinNode", 19), ("TRESUsageOutMinTask", 19), ("TRESUsageOutTot", 15),
)  # fmt: skip
FIELDS: tuple[Field, ...] = tuple(
    sorted(
        [
            ("AveCPU", 10, TEXT, _used(lambda row: full_clock(_mean(row, lambda use: use.cpu_s)))),
            ("AveRSS", 10, TEXT, _used(lambda row: row.size(_mean(row, lambda use: use.memory_bytes)))),
            ("JobID", -12, TEXT, lambda row: f"{row.job.id_text}.{row.label}"),
            ("MaxRSS", 10, TEXT, _used(lambda row: row.size(row.most_bytes))),
            ("MaxRSSNode", 10, TEXT, _used(lambda row: node_name())),
            ("MaxRSSTask", 10, TEXT, _used(lambda row: row.largest)),
            ("MinCPU", 10, TEXT, _used(lambda row: full_clock(row.least_cpu_s))),
            ("MinCPUNode", 10, TEXT, _used(lambda row: node_name())),
            ("MinCPUTask", 10, TEXT, _used(lambda row: row.laziest)),
            ("Nodelist", 20, TEXT, lambda row: row.job.node),
            ("NTasks", 8, WHOLE, lambda row: row.tasks),
            ("Pids", 20, TEXT, lambda row: ",".join(str(pid) for use in row.uses for pid in sorted(use.pids))),
            *((name, width, TEXT, nothing) for name, width in _EMPTY),
        ],
        key=lambda field: field[0].lower(),
    )
)
DEFAULT = (
    "jobid,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,"
    "maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,avecpufreq,reqcpufreqmin,reqcpufreqmax,"
    "reqcpufreqgov,consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,"
    "maxdiskwritenode,maxdiskwritetask,avediskwrite,tresusageinave,tresusageinmax,tresusageinmaxnode,"
    "tresusageinmaxtask,tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutave,"
    "tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutmin,tresusageoutminnode,"
    "tresusageoutmintask,tresusageouttot"
)
PIDS = "jobid,nodelist,pids"


def main(argv: Sequence[str]) -> int:
    return guarded("sstat", _sstat, argv)


def _help() -> str:
    from aver.slurm_cli.help import listing

    return listing(OPTIONS, "sstat [<OPTION>] -j <job(.stepid)>", WITHOUT_MEANING)


def _sstat(argv: Sequence[str]) -> int:
    parsed = opened("sstat", OPTIONS, argv, "", help=_help, usage=USAGE, helpformat=lambda: names_in_columns(FIELDS))
    if parsed is None:
        return 0
    asked = ",".join([*parsed.all("jobs"), *parsed.operands])
    wanted = [_parse_id(part.strip()) for part in asked.split(",") if part.strip()]
    if not wanted:
        raise Refusal("sstat: error: You didn't give me any jobs to stat.")
    text = ",".join(parsed.all("format")) or (PIDS if parsed.has("pidformat") else DEFAULT)
    try:
        columns = parse_columns(text, _fitting)
    except ValueError as error:
        raise Refusal(f'sstat: error: Invalid field requested: "{error}"') from None
    layout = Layout(parsed)
    show(layout.header(columns))
    status = 0
    for one in wanted:
        rows = _rows(parsed, *one)
        status = status if rows is not None else 1
        show(layout.lines(columns, rows or ()))
    return status


def _fitting(name: str) -> list[Field]:
    if name == "all":
        return list(FIELDS)
    exact = [field for field in FIELDS if field[0].lower() == name]
    return (exact or [field for field in FIELDS if field[0].lower().startswith(name)])[:1]


def _parse_id(text: str) -> tuple[str, str]:
    """A job and a step, which may be empty."""
    job, dot, step = text.partition(".")
    number, bar, index = job.partition("_")
    if not _is_number(number) or (bar and not _is_number(index)):
        raise Refusal(f"sstat: fatal: Bad job/step specified: {text}")
    if dot and step not in ("batch", "extern", "interactive") and not _is_number(step):
        raise Refusal(f"sstat: fatal: Bad step specified: {text}")
    return job, step


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _rows(parsed: Parsed, job_text: str, step: str) -> list[Row] | None:
    """The rows of one job's running steps; None, and a line, where there is no such job."""
    from aver.client.use.now import live_use, measured
    from aver.slurm_cli.job_names import parse_job
    from aver.slurm_cli.squeue.command import running_steps
    from aver.slurm_cli.sstat.attempt_key import key_of

    book = Book.open()
    named = parse_job(job_text)
    numbers = [] if named is None else named.numbers(book)
    jobs = book.numbered(numbers) if numbers else []
    if not jobs:
        say(f"sstat: error: couldn't get steps for job {job_text}: Invalid job id specified")
        return None
    active = [job for job in jobs if job.is_active and job.has_run]
    steps = [one for one in running_steps(book, active) if step in ("", one.label)]
    if not step and not parsed.has("allsteps"):
        steps = [one for one in steps if one.label != "batch"][:1]
    if not steps:
        say(f"sstat: error: no steps running for job {job_text}")
        return []
    uses = measured(live_use())
    found = []
    for one in steps:
        key = key_of(book, one.job.row.id) or ""
        keys = [key] if one.label == "batch" else [f"{key}.s{one.label}.t{task}" for task in range(one.tasks)]
        shown = [uses.get(task) for task in keys]
        found.append(Row(one.job, one.label, shown, is_exact=parsed.has("noconvert")))
    return found
