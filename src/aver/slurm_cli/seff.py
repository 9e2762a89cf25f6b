"""seff: how well a job used what it asked for, as Slurm's contributed script of that name prints it.

Without a memory limit, the machine's memory is what it could have used. What was not measured is `unknown`, never 0.
"""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.model.exit_text import raw_text
from aver.model.slurm_names import CLUSTER
from aver.slurm_cli.facts import Book
from aver.slurm_cli.output import show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.texts import full_clock
from aver.spec.getopt import BadOption, Table, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aver.slurm_cli.facts import JobFacts

OPTIONS = Table(flags="help:h version:v debug:d", values="file:f")
NOT_SERVED = ("debug", "file")
USAGE = """\
Usage: seff [Options] <Jobid>
       Options:
       -h    Help menu
       -v    Version
       -d    Debug mode: display raw Slurm data
"""
_KIB = 1024


def main(argv: Sequence[str]) -> int:
    return guarded("seff", _seff, argv)


def _seff(argv: Sequence[str]) -> int:
    try:
        parsed = parse(OPTIONS, argv)
    except BadOption as error:
        raise Refusal(f"seff: {error}\n{USAGE.rstrip()}") from None
    if parsed.has("version"):
        show("seff Version 2.1\n")
        return 1
    if parsed.has("help"):
        show(USAGE)
        return 1
    for name in NOT_SERVED:
        if parsed.has(name):
            raise Refusal(f"seff: error: -{name[0]} is not supported by aver")
    if len(parsed.operands) != 1:
        show(USAGE)
        return 1
    book = Book.open()
    job = _find(book, parsed.operands[0])
    if job is None:
        raise Refusal("Job not found.")
    show("".join(f"{line}\n" for line in _lines(book, job)))
    return 0


def _find(book: Book, text: str) -> JobFacts | None:
    """One job; of an array's number the first task, as the contributed script has it."""
    number, _, index = text.partition("_")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    jobs = book.numbered([int(number)])
    if index:
        jobs = [job for job in jobs if job.array_job == int(number) and job.array_index == index]
    if any(not job.is_settled for job in jobs) and book.refresh():
        return _find(Book.open(), text)
    return jobs[0] if jobs else None


def _lines(book: Book, job: JobFacts) -> list[str]:
    lines = [f"Job ID: {job.row.id}"]
    if job.array_job is not None:
        lines.append(f"Array Job ID: {job.id_text}")
    state = f"State: {job.state}" + (f" (exit code {_code(job)})" if job.is_settled else "")
    lines += [f"Cluster: {CLUSTER}", f"User/Group: {job.user}/{job.group}", state]
    lines += ["Cores: 1"] if job.cpus == 1 else ["Nodes: 1", f"Cores per node: {job.cpus}"]
    if job.is_pending or not job.has_run:
        return [*lines, f"Efficiency not available for jobs in the {job.state} state."]
    cpu_s, memory = _used(book, job)
    is_timed = not job.is_settled or job.row.elapsed_s is not None  # else its end is when it was known that it is over
    wall = int(job.elapsed_s)
    whole = wall * job.cpus
    share = "unknown" if cpu_s is None or not is_timed else f"{100 * cpu_s / whole if whole else 0:.2f}%"
    lines += [
        f"CPU Utilized: {'unknown' if cpu_s is None else full_clock(cpu_s)}",
        f"CPU Efficiency: {share} of {full_clock(whole) if is_timed else 'unknown'} core-walltime",
        f"Job Wall-clock time: {full_clock(wall) if is_timed else 'unknown'}",
    ]
    limit = job.mem_mib << 20 or _machine_bytes()
    per = f"{_size(limit // job.cpus)}/core" if job.is_mem_per_cpu else f"{_size(limit)}/node"
    part = "unknown" if memory is None else f"{100 * memory / limit:.2f}%"
    lines += [
        f"Memory Utilized: {'unknown' if memory is None else _size(memory)}",
        f"Memory Efficiency: {part} of {_size(limit)} ({per})",
    ]
    if cpu_s is not None and _is_cpu_least(book, job):
        lines.append("WARNING: CPU time is at least this: some of its processes did not wait for their children.")
    if not job.is_settled:
        lines.append(f"WARNING: Efficiency statistics may be misleading for {job.state} jobs.")
    return lines


def _code(job: JobFacts) -> str:
    """The whole code; of a signal 128 and its number, as the shell has it. Slurm's 0:125 is not a signal."""
    text = raw_text(job.row.exit) if job.ours == "OUT_OF_MEMORY" else job.exit_text
    code, _, signal = text.partition(":")
    return code if not signal or signal == "0" else str(128 + int(signal)) if code == "0" else code


def _used(book: Book, job: JobFacts) -> tuple[float | None, int | None]:
    """Processor time of all of it; memory of the script, or of the largest step with all its tasks."""
    if not job.is_settled:
        return _used_now(book, job)
    steps = book.steps([job]).get((job.row.id, job.row.attempt or 0), [])
    never_began = [step for step in steps if not step.ended_tasks and step.state == "CANCELLED" and step.exit is None]
    ended = [step for step in steps if step not in never_began]
    pairs = [(job.row.user_s, job.row.sys_s), *((step.user_s, step.sys_s) for step in ended)]
    times = [user + system for user, system in pairs if user is not None and system is not None]
    peaks = [] if job.row.peak_bytes is None else [job.row.peak_bytes]
    peaks += [int(step.peak_mean * step.ended_tasks) for step in steps if step.peak_mean is not None]
    return sum(times) if len(times) == len(pairs) else None, max(peaks) if peaks else None


def _is_cpu_least(book: Book, job: JobFacts) -> bool:
    steps = book.steps([job]).get((job.row.id, job.row.attempt or 0), [])
    return bool(job.row.is_cpu_least) or any(step.is_cpu_least for step in steps)


def _used_now(book: Book, job: JobFacts) -> tuple[float | None, int | None]:
    from aver.client.use.now import live_use, measured
    from aver.slurm_cli.sstat.attempt_key import key_of

    key = key_of(book, job.row.id)
    uses = [use for name, use in measured(live_use()).items() if key and (name == key or name.startswith(f"{key}.s"))]
    if not uses:
        return None, None
    return sum(use.cpu_s for use in uses), sum(use.memory_bytes for use in uses)


def _machine_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _size(value: int) -> str:
    """`1.07 MB`, `512.00 KB`: the largest unit in which it is 1 or more."""
    size = value / _KIB
    if not size:
        return "0.00 MB"
    for unit in ("KB", "MB", "GB", "TB"):
        if size < _KIB or unit == "TB":
            return f"{size:.2f} {unit}"
        size /= _KIB
    raise AssertionError
