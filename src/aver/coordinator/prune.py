"""Retention: the logs of old settled runs are cut, in a thread of its own. Verdicts, evidence and all rows stay.

Only files that Aver named itself are touched (`logs/aver-7.out`, `aver-7.out`, `aver-3/…`): what a user named with
--output is theirs. Of a job that did not complete the end of its log stays. Each file ends with a line that says when
and why it was cut, and is replaced as a whole. A run that is not settled is never touched. Cutting twice is harmless,
so a crash in between needs no repair: the next time goes on.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator

from aver.client.output_paths import Which, job_files
from aver.config import Retention
from aver.durable_files import write_file
from aver.model.record import Mutable, field
from aver.model.states import State
from aver.plan.matrix import values_of
from aver.protocol.messages import CutRun
from aver.render import verdict
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow, RunRow

KEPT_BYTES = 4096
MARK = b"[aver: pruned "
MOST_PROBLEMS = 5
CLOCKS_DIFFER_S = 60.0  # of the machine on which a log was written, and of this one


class RunLogs(Mutable):
    """The logs of one run: those that can be cut, and what all of them take."""

    run: RunRow
    files: list[tuple[str, bool]] = field(default_factory=list)  # path, whether its end stays
    size_bytes: int = 0


class Cut(Mutable):
    """What became, or would become, of one run's logs."""

    run: int
    name: str
    why: str
    files: int = 0
    size_bytes: int = 0
    private_files: int = 0  # environments, scripts and copies of stdin
    problems: list[str] = field(default_factory=list)

    def document(self) -> CutRun:
        return CutRun(
            self.run, self.name, self.why, self.files, self.size_bytes, self.private_files, tuple(self.problems)
        )


def choose(
    reader: Reader, rules: Retention, now: float, is_live: Callable[[int], bool]
) -> tuple[list[tuple[RunLogs, str]], int]:
    """The runs whose logs go, oldest first, each with why; and the size of all logs that were found."""
    pruned = reader.pruned()
    runs = reader.runs()
    found: list[RunLogs] = []
    total = 0
    for place, run in enumerate(runs):  # newest first
        logs = logs_of(reader, run)
        total += logs.size_bytes
        is_cut = pruned.get(run.id, -1.0) >= (run.ended_at or 0.0)
        if place >= rules.keep_last and run.state.is_settled and not is_cut and not is_live(run.id):
            found.append(logs)
    found.reverse()
    chosen: list[tuple[RunLogs, str]] = []
    left = total
    by_count_alone = rules.older_than_s is None and rules.max_bytes is None
    for logs in found:
        age = now - (logs.run.ended_at or logs.run.submitted_at)
        if by_count_alone:
            why = f"not among the last {rules.keep_last} runs"
        elif rules.older_than_s is not None and age > rules.older_than_s:
            why = f"older than {verdict.duration_words(rules.older_than_s)}"
        elif rules.max_bytes is not None and left > rules.max_bytes:
            why = f"all logs together were more than {verdict.limit_words(rules.max_bytes)}"
        else:
            continue
        chosen.append((logs, why))
        left -= logs.size_bytes
    return chosen, total


def logs_of(reader: Reader, run: RunRow) -> RunLogs:
    """The files that Aver named for the attempts of the run's jobs.

    What was written to after the run had ended is not its log: a run of another home has the same number and folder.
    """
    logs = RunLogs(run)
    for job, path in _paths(reader, run):
        try:
            info = os.lstat(path)
        except (OSError, ValueError):
            continue
        is_later = run.ended_at is not None and info.st_mtime > run.ended_at + CLOCKS_DIFFER_S
        if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_nlink == 1 and not is_later:
            logs.size_bytes += info.st_size
            logs.files.append((path, job.state is not State.COMPLETED))
    return logs


def _paths(reader: Reader, run: RunRow) -> Iterator[tuple[JobRow, str]]:
    """The output of each attempt that has no name of the user's, as the coordinator opened it."""
    submission = reader.submission(run.id)
    if submission is None:
        return
    flows = {run.first_job: submission.flow} | {one.first_job: one.flow for one in reader.generated(run.id)}
    for job in reader.jobs(run.id):
        flow = flows.get(job.first_job, submission.flow)
        spec = flow.jobs[job.spec] if job.spec < len(flow.jobs) else None
        if spec is None or spec.streams.stdout is not None:
            continue
        try:
            values = values_of(spec, job.member)
            which = [Which(run.id, job.id, job.name, attempt, values) for attempt in range(1, job.attempt + 1)]
            paths = [job_files(submission, spec, one, run.is_single).stdout for one in which]
        except (ValueError, LookupError):  # a flow of another version: what can't be named is left
            continue
        yield from ((job, path) for path in paths)


def cut_run(logs: RunLogs, why: str, now: float, *, for_real: bool) -> Cut:
    """Cut each log, or find out what that would free; what can't be cut is said and left."""
    done = Cut(logs.run.id, logs.run.name, why)
    for path, keeps_end in logs.files:
        try:
            freed = cut_log(path, why, now, KEPT_BYTES if keeps_end else 0, for_real=for_real)
        except OSError as error:
            if len(done.problems) < MOST_PROBLEMS:
                done.problems.append(f"can't cut {path}: {error.strerror}")
            continue
        if freed > 0:
            done.files += 1
            done.size_bytes += freed
    return done


def cut_log(path: str, why: str, now: float, kept_bytes: int, *, for_real: bool) -> int:
    """Replace the file by its end and a line that says so; return the bytes that this frees, 0 where it frees none."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            return 0
        file.seek(max(0, info.st_size - KEPT_BYTES))
        end = file.read(KEPT_BYTES)
    last = end.rstrip(b"\n").rpartition(b"\n")[2]
    if last.startswith(MARK):
        return 0
    kept = end[len(end) - min(kept_bytes, len(end)) :]
    if len(kept) < info.st_size and kept:
        kept = kept.partition(b"\n")[2] or kept  # whole lines, where there are any
    removed = info.st_size - len(kept)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)).encode()
    what = f"{verdict.bytes_words(removed)} of {verdict.bytes_words(info.st_size)} removed"
    footer = MARK + stamp + f", {why}: {what}]\n".encode()
    gap = b"" if not kept or kept.endswith(b"\n") else b"\n"
    size = len(kept) + len(gap) + len(footer)
    if size >= info.st_size:
        return 0
    if for_real:
        times = (info.st_atime_ns, info.st_mtime_ns)
        write_file(path, kept + gap + footer, stat.S_IMODE(info.st_mode), times)
    return info.st_size - size
