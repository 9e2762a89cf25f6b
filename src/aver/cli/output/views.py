"""How each document looks to a person. The words for outcomes come from `render.verdict` alone."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from aver.cli.output import documents as doc
from aver.cli.output import report_documents as rep
from aver.cli.output.json import encode
from aver.cli.output.table import Table, show_table
from aver.cli.output.text import Output, coloured
from aver.cli.output.words import bad_first_text, in_words, reason_words, use_over_time
from aver.model.record import replace
from aver.model.states import State
from aver.printable import one_line
from aver.render import verdict

UNKNOWN = "?"
NOTHING = verdict.NOTHING


def answer(output: Output, document: doc.Document, as_json: bool) -> None:
    """Write a command's answer: one JSON document, or what a person reads."""
    if as_json:
        output.line(encode(document, output.masking))
    else:
        show(output, document)


def show(output: Output, document: doc.Document) -> None:
    """Write the document for a person."""
    match document:
        case doc.JobList():
            _show_jobs(output, document.jobs, document.left_out)
        case doc.RunList():
            _show_runs(output, document)
        case doc.JobShown():
            _show_job(output, document)
        case doc.StepShown():
            _show_step(output, document.step)
            for warning in document.job.warnings:
                output.line(f"Warning: {warning}")
        case doc.RunShown():
            _show_run(output, document)
        case doc.Explained():
            _show_why(output, document)
        case doc.SubmittedFacts():
            output.line(str(document.run))
        case doc.Preview():
            _show_preview(output, document)
        case doc.Ended():
            pass  # said while it happened
        case doc.Acted():
            for result in document.results:
                (output.line if result.done else output.note)(f"{result.id}: {result.did}")
        case doc.LogText():
            output.line(document.text)
        case doc.CoordinatorFacts():
            output.line(document.detail)
            for problem in document.problems:
                output.line(problem)
        case doc.Diagnosis():
            _show_checks(output, document)
        case doc.Timeline():
            _show_timeline(output, document)
        case doc.Planned():
            from aver.cli.output.plan_view import plan_lines  # few commands need it

            for text in plan_lines(document):
                output.line(text)
        case doc.Written():
            output.line(document.path)
        case doc.Pruned():
            _show_pruned(output, document)
        case doc.PoolList():
            _show_pools(output, document)
        case doc.SettingList():
            _show_settings(output, document)
        case doc.AccountList():
            _show_accounts(output, document)
        case rep.ResultList() | rep.CauseList() | rep.UsageList() | rep.Corrected() | rep.Recovered():
            from aver.cli.output.report_views import show_report  # few commands need it

            show_report(output, document)
        case _:
            assert_never(document)


def _show_preview(output: Output, document: doc.Preview) -> None:
    rows = tuple(
        (
            job.name,
            str(job.jobs),
            job.engine,
            str(job.cpus),
            str(job.gpus),
            NOTHING if job.mem_bytes is None else verdict.bytes_words(job.mem_bytes),
            NOTHING if job.time_s is None else verdict.duration_words(job.time_s),
            ", ".join(job.needs) or NOTHING,
            one_line(job.command),
        )
        for job in document.definitions
    )
    heads = ("NAME", "JOBS", "ENGINE", "CPUS", "GPUS", "MEM", "TIME", "NEEDS", "COMMAND")
    show_table(output, Table(heads, rows, right=frozenset({1, 3, 4}), wide=8))
    if document.left_out:
        output.line(f"and {document.left_out} more definitions")
    count = "1 job" if document.jobs == 1 else f"{document.jobs} jobs"
    output.note(f"{document.name}: {count} in {one_line(document.folder)}; nothing was submitted")


def job_table(jobs: Iterable[doc.JobFacts], now: float) -> Table:
    """The columns of `aver jobs`, which are stable. The time of a job that runs is what has passed since it began."""
    rows = tuple(
        (
            str(job.id),
            str(job.run),
            job.name,
            believed_text(job),
            job.exit.text if job.exit is not None else absent_text(job),
            NOTHING if job.attempt == 0 else job.derived_exit or UNKNOWN,
            _time(job, now),
            absent_text(job) if job.peak_bytes is None else size(job.peak_bytes),
            job.reason or NOTHING,
            "; ".join(job.warnings) or NOTHING,
        )
        for job in jobs
    )
    heads = ("JOB", "RUN", "NAME", "STATE", "EXIT", "DERIVED", "TIME", "PEAK", "REASON", "WARNING")
    return Table(heads, rows, right=frozenset({0, 1, 6, 7}), wide=2, silent=((5, ("0:0",)), (7, (UNKNOWN,))))


def _time(job: doc.JobFacts, now: float) -> str:
    if job.elapsed_s is None and job.state == State.RUNNING and job.started_at is not None:
        return duration(max(0.0, now - job.started_at))
    return absent_text(job) if job.elapsed_s is None else duration(job.elapsed_s)


def _show_pools(output: Output, document: doc.PoolList) -> None:
    rows = tuple(
        (pool.name, str(pool.size), str(pool.used), ", ".join(map(str, pool.jobs)) or NOTHING, str(pool.waiting))
        for pool in document.pools
    )
    if rows:
        show_table(output, Table(("POOL", "SIZE", "USED", "JOBS", "WAITING"), rows, right=frozenset({1, 2, 4}), wide=3))
    else:
        output.note("there are no pools; `aver pool set NAME SIZE` makes one")


def _show_settings(output: Output, document: doc.SettingList) -> None:
    file = os.path.basename(document.file)
    rows = tuple(
        (one.key, one.value or NOTHING, one.default or NOTHING, file if one.is_set else NOTHING, one.meaning)
        for one in document.settings
    )
    show_table(output, Table(("KEY", "VALUE", "DEFAULT", "SET IN", "MEANING"), rows, wide=4))


def _show_accounts(output: Output, document: doc.AccountList) -> None:
    rows = tuple(
        (
            row.id,
            NOTHING if row.job is None else str(row.job),
            NOTHING if row.attempt is None else str(row.attempt),
            row.name,
            row.state,
            row.exit or UNKNOWN,
            duration(row.elapsed_s),
            size(row.maxrss_bytes),
            row.node or NOTHING,
        )
        for row in document.rows
    )
    heads = ("ID", "JOB", "ATTEMPT", "NAME", "STATE", "EXIT", "TIME", "MAXRSS", "NODE")
    show_table(output, Table(heads, rows, right=frozenset({1, 2, 6, 7}), wide=3))


def duration(seconds: float | None) -> str:
    return NOTHING if seconds is None else verdict.duration_words(seconds)


def size(size_bytes: int | None) -> str:
    return NOTHING if size_bytes is None else verdict.bytes_words(size_bytes)


def moment(at: float | None) -> str:
    return NOTHING if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def near_moment(at: float | None) -> str:
    """For a terminal: the time of day, with the date where that is not today."""
    if at is None:
        return NOTHING
    then, today = time.localtime(at), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M", then)


def clock(at: float) -> str:
    """The time of day to the millisecond, for a timeline."""
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at * 1000) % 1000:03d}"


def state_text(output: Output, state: str, verified: bool | None = None, reason: str | None = None) -> str:
    """The state; with a `*` where it is believed and not verified, and with the run that it is taken over from."""
    mark = verdict.believed_text(State(state), verified).removeprefix(state) + verdict.from_text(reason)
    return f"{coloured(State(state)) if output.has_colours else state}{mark}"


def believed_text(job: doc.JobFacts) -> str:
    return verdict.believed_text(State(job.state), job.verified) + verdict.from_text(job.reason)


def absent_text(job: doc.JobFacts) -> str:
    """`?` for an unknown figure of a job that ran, `-` for none."""
    return verdict.absent_text(State(job.state), job.attempt > 0 and job.started_at is not None, job.reason or "")


def _show_jobs(output: Output, jobs: tuple[doc.JobFacts, ...], left_out: int) -> None:
    if not jobs:
        output.note("no jobs; `aver run -- COMMAND` runs one")  # __main__ has it too
        return
    show_job_table(output, jobs)
    if left_out:
        output.note(f"{left_out} more; --all shows them")


def show_job_table(output: Output, jobs: Sequence[doc.JobFacts]) -> None:
    """On a terminal, how each ended in words."""
    table = job_table(jobs, time.time())
    if output.out_is_terminal:
        words = [reason_words(State(job.state), job.exit, job.reason) for job in jobs]
        table = in_words(table, words)
    if all(row[0] == row[1] for row in table.rows):  # single jobs: the run is the job
        table = replace(table, silent=(*table.silent, (1, tuple(row[1] for row in table.rows))))
    show_table(output, table)


def _show_runs(output: Output, document: doc.RunList) -> None:
    if not document.runs:
        output.note("no runs; `aver run flow.yaml` or `aver run -- COMMAND` makes one")
        return
    when = near_moment if output.out_is_terminal else moment
    rows = tuple(
        (
            str(run.id),
            run.name,
            run.state,
            (bad_first_text if output.out_is_terminal else counts_text)(run.counts),
            when(run.submitted_at),
            when(run.ended_at),
        )
        for run in document.runs
    )
    show_table(
        output, Table(("RUN", "NAME", "STATE", "JOBS", "SUBMITTED", "ENDED"), rows, right=frozenset({0}), wide=3)
    )
    if document.left_out:
        output.note(f"{document.left_out} more; --all shows them")


def counts_text(counts: dict[str, int]) -> str:
    """`3 COMPLETED, 1 FAILED`, in the order of the states."""
    return ", ".join(f"{counts[state]} {state}" for state in State if counts.get(state)) or NOTHING


def _facts(output: Output, pairs: Sequence[tuple[str, str]]) -> None:
    width = max([12, *(len(key) + 1 for key, _ in pairs)])
    for key, value in pairs:
        output.line(f"{key:<{width}}{one_line(value)}")


def _show_job(output: Output, document: doc.JobShown) -> None:
    job = document.job
    output.line(f"job {job.id} {one_line(job.name)} {state_text(output, job.state, job.verified, job.reason)}")
    output.say(document.sentence)
    output.line("")
    pairs = [
        ("run", str(job.run)),
        ("address", job.address),
        ("reason", job.reason or ""),
        ("exit", "" if job.exit is None and absent_text(job) == NOTHING else exit_text(job.exit)),
        ("derived", f"{job.derived_exit or UNKNOWN}, from its steps" if document.steps else ""),
        ("verified", f"yes, by {job.source}" if job.verified else "no" if job.is_settled else "not yet settled"),
        ("detail", job.detail),
        *_asked(document.asked),
        ("command", command_text(document.command)),
        ("folder", document.folder),
        ("user", f"{document.user} on {document.host}"),
        ("typed", shlex.join(document.typed)),
        ("secrets", ", ".join(document.secrets)),
        ("submitted", moment(job.submitted_at)),
        ("waiting", "" if document.waiting_since is None else f"since {moment(document.waiting_since)}"),
        ("started", moment(job.started_at)),
        ("ended", moment(job.ended_at) + (", or before: that was when it was known" if _has_unseen_end(job) else "")),
        ("elapsed", absent_text(job) if job.elapsed_s is None else duration(job.elapsed_s)),
    ]
    _facts(output, [(key, value) for key, value in pairs if value])
    for warning in job.warnings:
        _facts(output, [("warning", warning)])
    for attempt in document.attempts:
        output.line("")
        _show_attempt(output, attempt)
        for use in document.use:
            if use.attempt == attempt.attempt:
                _facts(output, use_over_time(attempt, use))
    for step in document.steps:
        output.line("")
        _show_step(output, step)


def _asked(asked: doc.AskedFacts) -> list[tuple[str, str]]:
    """What was asked for, each where it says something."""
    room = _room_text(asked.cpus, asked.gpus, asked.mem_bytes, asked.time_s)
    return [
        ("asked", room),
        ("needs", ", ".join(asked.needs)),
        ("retry", f"up to {asked.retries} time{'s' if asked.retries != 1 else ''}" if asked.retries else ""),
        ("begin", moment(asked.begin_at) if asked.begin_at is not None else ""),
        ("deadline", moment(asked.deadline_at) if asked.deadline_at is not None else ""),
        ("priority", str(asked.priority) if asked.priority else ""),
        ("comment", asked.comment or ""),
    ]


def _room_text(cpus: int | float | None, gpus: int | None, mem_bytes: int | None, time_s: int | None) -> str:
    """`cpus 2, memory 2.0 GiB, time 10 min`."""
    parts = [
        f"cpus {cpus}" if cpus is not None else "",
        f"gpus {gpus}" if gpus else "",
        f"memory {size(mem_bytes)}" if mem_bytes is not None else "",
        f"time {duration(time_s)}" if time_s is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _has_unseen_end(job: doc.JobFacts) -> bool:
    """Whether it ran, and nobody said for how long."""
    return job.ended_at is not None and job.elapsed_s is None and absent_text(job) == UNKNOWN


_PEAK_WORDS = {
    "largest": " (its largest process)",
    "all": " (all processes)",
    "parts": " (at most: script and steps, each at its own peak)",
}


def _show_attempt(output: Output, attempt: doc.AttemptFacts) -> None:
    output.line(f"attempt {attempt.attempt} {state_text(output, attempt.state, attempt.verified)}")
    least = "at least " if attempt.is_cpu_least else ""
    whose = _PEAK_WORDS.get(attempt.peak_of or "", "")
    used = [
        f"user {least}{duration(attempt.user_s)}" if attempt.user_s is not None else "",
        f"system {least}{duration(attempt.sys_s)}" if attempt.sys_s is not None else "",
        f"peak memory {size(attempt.peak_bytes)}{whose}" if attempt.peak_bytes is not None else "",
    ]
    pairs = [
        ("  key", attempt.key),
        ("  engine", attempt.engine + (f" on {attempt.node}" if attempt.node else "")),
        ("  reason", attempt.reason or ""),
        ("  exit", "" if attempt.exit is None and _is_no_exit(attempt) else exit_text(attempt.exit)),
        ("  asked", _room_text(attempt.cpus, attempt.gpus, attempt.mem_bytes, attempt.time_s)),
        ("  used", ", ".join(filter(None, used))),
        ("  planned", moment(attempt.planned_at)),
        ("  started", moment(attempt.started_at)),
        ("  ended", moment(attempt.ended_at)),
        ("  elapsed", duration(attempt.elapsed_s)),
        ("  stdout", attempt.stdout or ""),
        ("  stderr", attempt.stderr or ""),
    ]
    _facts(output, [(key, value) for key, value in pairs if value])


def _is_no_exit(attempt: doc.AttemptFacts) -> bool:
    """Whether it has none to know: it runs, or never ran."""
    reason, has_begun = attempt.reason or "", attempt.started_at is not None
    return verdict.absent_text(State(attempt.state), has_begun, reason) == NOTHING


def _show_step(output: Output, step: doc.StepFacts) -> None:
    output.line(f"step {step.address} {one_line(step.name)} {state_text(output, step.state)}")
    pairs = [
        ("  command", command_text(step.command)),
        ("  reason", step.reason or ""),
        ("  exit", exit_text(step.exit) if step.is_settled else ""),
        ("  srun", f"exited {step.srun_code}" if step.srun_code is not None else ""),
        ("  started", moment(step.started_at)),
        ("  ended", moment(step.ended_at)),
    ]
    _facts(output, [(key, value) for key, value in pairs if value])
    for line in step.summary.splitlines():
        output.line(f"  {one_line(line)}")


def exit_text(status: doc.ExitFacts | None) -> str:
    """`3:0`, `0:9, core dumped`, or `?`."""
    if status is None:
        return UNKNOWN
    return status.text + (", core dumped" if status.core_dumped else "")


def command_text(command: tuple[str, ...]) -> str:
    """A command as one would type it; a script or a shell's text by its first lines."""
    return shlex.join(command)


def _show_run(output: Output, document: doc.RunShown) -> None:
    run = document.run
    output.line(f"run {run.id} {one_line(run.name)} {state_text(output, run.state)}")
    output.line("")
    params = ", ".join(f"{name}={value}" for name, value in document.params.items())
    pairs = [
        ("jobs", counts_text(run.counts)),
        ("not selected", ", ".join(document.unselected)),
        ("round", str(run.round)),
        ("folder", run.folder),
        ("user", f"{document.user} on {document.host}"),
        ("typed", shlex.join(document.typed)),
        ("params", one_line(params)),
        ("submitted", moment(run.submitted_at)),
        ("ended", moment(run.ended_at)),
    ]
    some = [pair for pair in pairs if pair[1] or pair[0] not in ("not selected", "params")]
    _facts(output, some)
    output.line("")
    _show_jobs(output, document.jobs, document.left_out)


def _show_why(output: Output, document: doc.Explained) -> None:
    job = document.job
    output.say(document.sentence)
    for warning in job.warnings:
        output.say(f"Warning: {warning}")
    output.line("")
    width = max((len(item.source) for item in document.timeline), default=0)
    day = time.strftime("%Y-%m-%d")
    for item in document.timeline:
        if (other := time.strftime("%Y-%m-%d", time.localtime(item.at))) != day:
            output.line(f"{other}:")
            day = other
        prefix = f"{clock(item.at)}  {item.source.ljust(width)}  "
        for at, part in enumerate(output.folded(one_line(item.what), len(prefix))):
            output.line((" " * len(prefix) if at else prefix) + part)
    if document.next:
        output.line("")
        output.line("Next:")
        for command in document.next:
            output.line(f"  {command}")


def _show_timeline(output: Output, document: doc.Timeline) -> None:
    job = document.job
    output.line(f"job {job.id} {one_line(job.name)} {state_text(output, job.state, job.verified, job.reason)}")
    output.line("")
    states = max((len(one.state or NOTHING) for one in document.transitions), default=0)
    sources = max((len(one.source) for one in document.transitions), default=0)
    for one in document.transitions:
        attempt = "  " if one.attempt is None else f"#{one.attempt}"
        state = (one.state or NOTHING).ljust(states)
        at = f"{moment(one.at)}.{int(one.at * 1000) % 1000:03d}"
        output.line(f"{at}  {attempt}  {state}  {one.source.ljust(sources)}  {one_line(one.what)}")
        if one.said and one.said != one.what:
            output.line(f"    {one_line(one.said)}")


def _show_pruned(output: Output, document: doc.Pruned) -> None:
    verb = "would be cut" if document.is_dry_run else "cut"
    for run in document.runs:
        logs = f"{run.files} log{'s' if run.files != 1 else ''}"
        removed = f"; environment {'would be ' if document.is_dry_run else ''}removed" if run.private_files else ""
        output.line(f"{run.run} {one_line(run.name)}: {logs} {verb}, {size(run.size_bytes)}{removed}: {run.why}")
        for problem in run.problems:
            output.note(f"run {run.run}: {one_line(problem)}")
    freed = "would be freed" if document.is_dry_run else "freed"
    output.line(f"{size(document.freed_bytes)} {freed}, {size(document.left_bytes)} of logs left")


_MARKS: Callable[[str], str] = {"ok": "ok", "limited": "limited", "missing": "MISSING"}.__getitem__


def _show_checks(output: Output, document: doc.Diagnosis) -> None:
    width = max(len(check.name) for check in document.checks)
    for check in document.checks:
        prefix = f"{_MARKS(check.status):<8}{check.name.ljust(width)}  "
        for text in filter(None, (check.fact, check.advice)):
            for part in output.folded(one_line(text), len(prefix)):
                output.line(prefix + part)
                prefix = " " * len(prefix)
