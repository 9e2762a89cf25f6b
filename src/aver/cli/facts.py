"""From rows of the store to the documents that commands answer with."""

from __future__ import annotations

import json
from collections.abc import Container
from itertools import islice
from typing import Any

from aver.cli.output import documents as doc
from aver.cli.session import Session
from aver.cli.steps import warnings_of_steps
from aver.client.documents import exit_facts, job_facts, known_reason
from aver.client.output_paths import JobFiles, Which, job_files
from aver.errors import AverError
from aver.model.evidence import WitnessRecord
from aver.model.job import Argv, Command, JobSpec, Script, Shell
from aver.model.record import Record, replace
from aver.plan.matrix import members, values_of
from aver.plan.placeholders import fill
from aver.plan.shell_text import fill_shell
from aver.store.read.rows import AttemptRow, JobRow

MOST_COMPARED = 1000  # members of a matrix: `aver log` does not work out the files of a million


def jobs_facts(session: Session, jobs: list[JobRow]) -> tuple[doc.JobFacts, ...]:
    """The facts of many jobs; secrets of their runs are masked from now on."""
    runs = {job.run for job in jobs}
    session.mask(runs)
    single = {run for run in runs if session.run_row(run).is_single}
    warned = warnings_of_steps(session, jobs)
    peaks = session.found_reader("").peaks(job.id for job in jobs) if jobs else {}
    return tuple(job_facts(job, job.run in single, warned.get(job.id, ()), peaks.get(job.id)) for job in jobs)


def attempt_facts(session: Session, job: JobRow, attempt: AttemptRow, record: WitnessRecord | None) -> doc.AttemptFacts:
    highest = None if record is None else record.highest
    files = files_of(session, job, attempt.attempt)
    made = {
        "state": attempt.state.value,
        "reason": known_reason(attempt.reason),
        "exit": exit_facts(attempt.exit),
        "peak_of": _peak_of(attempt.peak_bytes, highest),
        "cpus": attempt.request.cpus,
        "gpus": attempt.request.gpus,
        "mem_bytes": attempt.request.mem_bytes,
        "time_s": attempt.request.time_s,
        "stdout": files.stdout,
        "stderr": files.stderr or files.stdout,
    }
    return doc.AttemptFacts(**_same(attempt, doc.AttemptFacts, made) | made)


def _same(row: object, document: type[Record], made: Container[str]) -> dict[str, Any]:
    """The fields of a document that its row has under the same names, but for those that are made of it."""
    return {name: getattr(row, name) for name in document.__struct_fields__ if name not in made}


def _peak_of(peak_bytes: int | None, highest: tuple[int, bool] | None) -> str | None:
    """Whose peak it is: that of the script's own record, or one with what its steps used."""
    if highest is None or peak_bytes is None:
        return None
    if peak_bytes != highest[0]:
        return "parts"
    return "largest" if highest[1] else "all"


def files_of(session: Session, job: JobRow, attempt: int) -> JobFiles:
    """Where this attempt reads and writes, as the coordinator opens it."""
    submission = session.submission(job.run)
    spec = session.spec(job)
    values = values_of(spec, job.member)
    member = None if spec.matrix is None else job.member
    which = Which(run=job.run, job=job.id, name=job.name, attempt=attempt, values=values, member=member)
    return job_files(submission, spec, which, submission.flow.is_single)


def output_of(session: Session, job: JobRow, attempt: int, err: bool) -> tuple[str, bool]:
    """The file that has what this attempt wrote, and whether it has that of other attempts too; AverError if a later
    one has overwritten it. A file that the flow names is one for all attempts."""
    files = files_of(session, job, attempt)
    path = _chosen(files, err)
    if attempt < job.attempt:
        following = files_of(session, job, attempt + 1)
        if _chosen(following, err) == path and not following.append:
            raise AverError(
                f"what attempt {attempt} of job {job.id} wrote is gone: attempt {attempt + 1} overwrote {path}"
            )
        return path, _chosen(following, err) == path
    return path, attempt > 1 and files.append and _chosen(files_of(session, job, attempt - 1), err) == path


def is_others_output(session: Session, job: JobRow, err: bool) -> bool:
    """Whether the flow gives the file of this job's newest attempt to another member of its matrix too."""
    spec, submission = session.spec(job), session.submission(job.run)
    if spec.matrix is None or (spec.streams.stderr if err else spec.streams.stdout) is None:
        return False
    own = _chosen(files_of(session, job, job.attempt), err)
    first = job.id - job.member
    for number, one in enumerate(islice(members(spec), MOST_COMPARED)):
        values = one.values + spec.params
        which = Which(job.run, first + number, spec.name + one.label, job.attempt, values, number)
        if number != job.member and _chosen(job_files(submission, spec, which, submission.flow.is_single), err) == own:
            return True
    return False


def _chosen(files: JobFiles, err: bool) -> str:
    return files.stderr if err and files.stderr is not None else files.stdout


def _typed(args: tuple[str, ...]) -> tuple[str, ...]:
    """The command without what gives it a terminal."""
    if args[1:3] != ("-P", "-m"):
        return args
    from aver.cli.terminal.host import without_terminal  # few jobs have one

    return without_terminal(args)


def command_of(session: Session, job: JobRow) -> tuple[str, ...]:
    """The command with the member's values in it; a script or a shell's text as one word."""
    spec = session.spec(job)
    values = dict(values_of(spec, job.member))
    command: Command = spec.command
    match command:
        case Argv(args=args):
            return tuple(fill(arg, values) for arg in _typed(args))
        case Shell(text=text, shell=shell):
            try:
                return (*shell, "-c", fill_shell(text, values, shell))
            except ValueError:  # it was never started
                return (*shell, "-c", text)
        case Script(text=text, args=args):
            first = text.splitlines()[0] if text else ""
            return (f"(batch script, {len(text.splitlines())} lines, {first})", *args)


def edited_spec(session: Session, job: JobRow) -> JobSpec:
    """The job as `aver edit` and scontrol changed it since it was submitted; the last change of each key counts."""
    edited: dict[str, Any] = {}
    for asked in session.found_reader(str(job.id)).asked(job.run):
        if asked.what == "update" and asked.job == job.id:
            edited |= json.loads(asked.detail)
    spec = session.spec(job)
    request = replace(
        spec.request,
        cpus=edited.get("cpus", spec.request.cpus),
        mem_bytes=edited.get("mem_bytes", spec.request.mem_bytes) or None,
        time_s=edited.get("time_s", spec.request.time_s),
    )
    return replace(
        spec,
        request=request,
        begin_at=edited.get("begin_at", spec.begin_at),
        priority=edited.get("priority", spec.priority),
        comment=edited.get("comment", spec.comment),
    )
