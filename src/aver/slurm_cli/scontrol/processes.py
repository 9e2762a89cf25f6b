"""`scontrol listpids`, `pidinfo` and `notify`: jobs and their processes on this machine, found in /proc."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence

from aver.client.use.now import Use, live_use
from aver.slurm_cli.facts import Book
from aver.slurm_cli.job_facts import JobFacts
from aver.slurm_cli.job_names import parse_job
from aver.slurm_cli.refusal import Refusal, tell
from aver.slurm_cli.squeue.command import running_steps
from aver.slurm_cli.sstat.attempt_key import key_of

INVALID = "Invalid job id specified"
NO_PID = "Failed to locate job for requested pid"
NO_LIMIT_S = 365 * 86400  # what Slurm counts for a job without a time limit


class Process:
    """One process of a script or task. `task` None: something that it has started."""

    def __init__(self, pid: int, job: JobFacts, step: str, task: int | None) -> None:
        self.pid, self.job, self.step, self.task = pid, job, step, task


def list_pids(words: Sequence[str]) -> int:
    """`listpids [JOB[.STEP]]`: all processes of running jobs."""
    text = words[0] if words else ""
    named = parse_job(text) if text else None
    if text and named is None:
        raise Refusal(f"Invalid job id {text}")
    book = Book.open()
    wanted = None if named is None else set(named.numbers(book))
    shown = [
        one
        for one in _processes(book)
        if wanted is None
        or (one.job.row.id in wanted and named is not None and named.step in (None, _number(one.step)))
    ]
    if not shown and text:
        what = f"StepId={text}" if named is not None and named.step is not None else f"JobId={text}"
        raise Refusal(f"scontrol: error: {what} does not exist on node {os.uname().nodename.partition('.')[0]}.")
    tell(f"{'PID':<8} {'JOBID':<8} {'STEPID':<8} {'LOCALID':<7} {'GLOBALID':<8}")
    for one in shown:
        rank = "-" if one.task is None else str(one.task)
        tell(f"{one.pid:<8} {one.job.row.id:<8} {one.step:<8} {rank:<7} {rank:<8}")
    return 0


def pid_info(words: Sequence[str]) -> int:
    """`pidinfo PID`: which job it belongs to, and how long that may run."""
    text = words[0]
    book = Book.open()
    for one in _processes(book):
        if text == str(one.pid) and one.job.started_at is not None:
            now = time.time()
            end = one.job.started_at + (NO_LIMIT_S if one.job.limit_s is None else one.job.limit_s)
            tell(f"Slurm JobId={one.job.row.id} ends at {time.ctime(end)}")
            tell(f"Job remaining time is {max(0, int(end - now))} seconds")
            return 0
    raise Refusal(NO_PID)


def notify(words: Sequence[str]) -> int:
    """`notify JOB TEXT…`: a line in the job's standard error, or on that of its srun or salloc."""
    book = Book.open()
    named = parse_job(words[0])
    numbers = [] if named is None or named.step is not None else named.numbers(book)
    if not numbers:
        raise Refusal(f"slurm_notify_job error: {INVALID}")
    uses = live_use()
    running = [job for job in book.unsettled() if job.row.id in numbers and job.is_active and job.has_run]
    found = [(job, uses.get(key_of(book, job.row.id) or "")) for job in running]
    scripts = [(job, pid) for job, use in found if use is not None for pid in use.pids if _is_first(pid, use)]
    if not scripts:
        raise Refusal("slurm_notify_job error: Job/step already completing or completed")
    for job, pid in scripts:  # an srun or a salloc has given the job its own standard error
        speaker = "slurmstepd: error" if job.is_batch else str(job.named["kind"])
        _write_to_stderr(pid, f"{speaker}: {' '.join(words[1:])}\n")
    return 0


def _write_to_stderr(pid: int, line: str) -> None:
    path = f"/proc/{pid}/fd/2"
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            raise Refusal("scontrol: error: the job's standard error is a socket, and can't be written to")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            os.write(descriptor, line.encode("utf-8", "surrogateescape"))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Refusal(f"scontrol: error: can't write to the job's standard error: {error.strerror}") from None


def _processes(book: Book) -> Iterator[Process]:
    """The steps of each job, then its script."""
    active = [job for job in book.unsettled() if job.is_active and job.has_run]
    uses = live_use()
    for step in running_steps(book, active):
        key = key_of(book, step.job.row.id) or ""
        tasks = (
            [(0, key)]
            if step.label == "batch"
            else [(rank, f"{key}.s{step.label}.t{rank}") for rank in range(step.tasks)]
        )
        for rank, own in tasks:
            use = uses.get(own)
            for pid in sorted(use.pids) if use is not None else ():
                yield Process(pid, step.job, step.label, rank if use is not None and _is_first(pid, use) else None)


def _is_first(pid: int, use: Use) -> bool:
    """Whether its witness started it, and not another process of the same task."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1]) not in use.pids
    except OSError:
        return False


def _number(label: str) -> int | None:
    return int(label) if label.isdigit() else None
