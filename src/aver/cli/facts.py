"""From rows of the store to the documents that commands answer with."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable
from typing import Any

from aver.cli.output import documents as doc
from aver.cli.session import Session
from aver.cli.steps import warnings_of_steps
from aver.client.documents import exit_facts, job_facts, known_reason
from aver.client.output_paths import JobFiles, Which, job_files
from aver.errors import AverError
from aver.model.evidence import WitnessRecord
from aver.model.job import Argv, Command, JobSpec, Script, Shell, Submission
from aver.model.record import Record, replace
from aver.plan.matrix import Members
from aver.plan.placeholders import fill, names_in
from aver.plan.shell_text import fill_shell
from aver.spec.patterns import patterns_in
from aver.spec.sbatch.array import is_array
from aver.store.read.rows import AttemptRow, JobRow


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
    values = session.values(job)
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
    submission, spec = session.submission(job.run), session.spec(job)
    return shares_output(submission, spec, (job.run, job.id, job.attempt), job.member, err)


def shares_output(
    submission: Submission, spec: JobSpec, numbers: tuple[int, int, int], member: int, err: bool
) -> bool:  # fmt: skip
    """Whether another member of the matrix has the same file; `numbers` are of the run, the job and its attempt."""
    pattern = spec.streams.stderr if err else spec.streams.stdout
    if spec.matrix is None or pattern is None:
        return False
    run, job, attempt = numbers
    every, first = Members(spec.matrix), job - member

    def path_of(number: int) -> str:
        one = every[number]
        which = Which(run, first + number, spec.name + one.label, attempt, one.values + spec.params, number)
        return _chosen(job_files(submission, spec, which, submission.flow.is_single), err)

    own = path_of(member)
    return any(path_of(one) == own for one in _may_share(spec, every, pattern, own, (first, member)) if one != member)


def _may_share(
    spec: JobSpec, every: Members, pattern: str, own: str, numbers: tuple[int, int]
) -> Iterable[int]:  # fmt: skip
    """The members that may have this file. All, unless the pattern tells of most that they have another.

    `numbers` are of the matrix's first job, and of the member whose file it is.
    """
    assert spec.matrix is not None
    axes, template = dict(spec.matrix.axes), pattern + (spec.folder or "")
    names = sorted(names_in(template) - {name for name, _ in spec.params})
    values = [value for name in names for value in axes.get(name, ())]
    is_plain = axes.keys() >= set(names) and not (spec.matrix.include or is_array(spec))
    if (
        not is_plain
        or "x" in patterns_in(pattern)
        or ".." in template
        or "\\" in template
        or any(_is_odd(value) for value in values)
    ):
        return range(len(every))
    first, member = numbers
    if patterns_in(pattern) & {"j", "J", "a"}:  # the number of the member, or of its job, is in the path
        runs = re.findall("[0-9]+", own)
        digits = {int(run[at:to]) for run in runs for at in range(len(run)) for to in range(at + 1, len(run) + 1)}
        return {one for digit in digits for one in (digit, digit - first) if 0 <= one < len(every)}
    groups, keys = every.group(names)  # members with the same values have the same file
    if groups.count(groups[member]) > 1:
        return (one for one, group in enumerate(groups) if group == groups[member])
    fits = [all(value in own for value in key) for key in keys]
    return (one for one, group in enumerate(groups) if fits[group])


def _is_odd(value: str) -> bool:
    """Whether the value may stand in a path as something else than itself."""
    return not value.strip(".") or any(one in value for one in ("/", "..", "\\", "%"))


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
    values = dict(session.values(job))
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
