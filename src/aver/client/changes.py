"""What has changed since the jobs of a settled run ran, and what must therefore run again.

Read-only. A job reruns only for a named cause: its command, environment or an input changed, an output is missing,
or a job that it needs reruns. A completed job without such a cause is never repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from aver.client.input_files import find_files, hash_file, stat_file
from aver.client.job_files import Which, job_files
from aver.errors import UsageError
from aver.model.events import Fingerprinted
from aver.model.job import FlowSpec, JobSpec, Matrix, Script, Submission
from aver.model.reasons import parse_from_run
from aver.model.record import Record, replace
from aver.model.states import State
from aver.plan.address import parse_address
from aver.plan.matrix import values_of
from aver.plan.placeholders import fill
from aver.plan.planner import Plan
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow


class Rerun(Record):
    """A job that will run again, and why."""

    job: int
    name: str
    why: str


class Changes(Record):
    """`flow` is the run's new flow; None: unchanged."""

    causes: tuple[Rerun, ...]
    flow: FlowSpec | None


def find_changes(reader: Reader, run: int, read: FlowSpec | None, inherited: tuple[str, ...] = ()) -> Changes:
    """Compare the run with the files and, where `read` is given, with the flow as it is now.

    `inherited` are variables that the run inherited and that have other values now.
    Raise UsageError if the run is not settled, or if the flow has other jobs now.
    """
    row, submission = reader.run(run), reader.submission(run)
    if row is None or submission is None:
        raise UsageError(f"run {run} does not exist; `aver runs` lists them")
    if not row.state.is_settled:
        raise UsageError(f"run {run} is {row.state}: its changes can be compared once it is settled; aver watch {run}")
    old = submission.flow
    new = old if read is None else merged(old, read, run)
    batches = reader.generated(run)
    plan = Plan(new)
    specs = {row.first_job: (old, new)}
    for batch in batches:
        plan.add(batch.flow)
        specs[batch.first_job] = (batch.flow, batch.flow)
    marks: dict[int, dict[int, Fingerprinted]] = {}  # by run
    jobs = reader.jobs(run)
    why: dict[int, str] = {}  # by index
    for index, job in enumerate(jobs):
        taken = parse_from_run(job.reason) if job.state is State.COMPLETED else None
        worked = job if taken is None else reader.job(taken.job)
        if worked is None or worked.attempt == 0 or worked.started_at is None:
            continue  # it never ran: it follows what it needs
        before, now = (flow.jobs[job.spec] for flow in specs[job.first_job])
        found = [
            *definition_changes(before, now, inherited),
            *_of_files(submission, now, job, worked, _marks_of(reader, marks, worked)),
        ]
        if found:
            why[index] = "; ".join(found)
    again = {*why, *(lower for index in why for lower in plan.below(index))}
    names = [jobs[index].name for index in sorted(again)]
    below = {
        index: f"it needs {needed_by(specs[jobs[index].first_job][1].jobs[jobs[index].spec], names)}, which runs again"
        for index in again
        if index not in why
    }
    together = sorted((why | below).items())
    causes = tuple(Rerun(jobs[index].id, jobs[index].name, text) for index, text in together)
    return Changes(causes, None if new == old else new)


def needed_by(spec: JobSpec, names: Sequence[str]) -> str:
    """The first of these jobs that the job needs itself."""
    for need in (*spec.needs.all_of, *(need for group in spec.needs.any_of for need in group)):
        wanted = parse_address(need.job)
        for name in names:
            found = parse_address(name)
            values = dict(found.values)
            if fnmatchcase(found.name, wanted.name) and all(
                fnmatchcase(values.get(axis, ""), value) for axis, value in wanted.values
            ):
                return name
    return names[0]


def merged(old: FlowSpec, read: FlowSpec, run: int) -> FlowSpec:
    """Merge freshly read definitions into the run's flow. Jobs and matrices must be the same."""
    if old.is_single:
        return _merged_single(old, read)
    found = {spec.name: spec for spec in read.jobs}
    gone = [spec.name for spec in old.jobs if spec.name not in found]
    names = {spec.name for spec in old.jobs}
    more = [spec.name for spec in read.jobs if spec.name not in names]
    other = [spec.name for spec in old.jobs if spec.name in found and _members(spec) != _members(found[spec.name])]
    words = [
        f"{word}: {', '.join(some)}" for word, some in (("new", more), ("gone", gone), ("other members", other)) if some
    ]
    if words:
        raise UsageError(f"the flow has other jobs now than run {run} ({'; '.join(words)}); submit it as a new run")
    jobs = tuple(
        replace(
            found[spec.name],
            background=spec.background,
            hold=spec.hold,
            begin_at=spec.begin_at,
            deadline_at=spec.deadline_at,
        )
        for spec in old.jobs
    )
    return replace(
        old, jobs=jobs, max_parallel=read.max_parallel, retry_budget=read.retry_budget, params=read.params,
        defaults=read.defaults, included=read.included,
    )  # fmt: skip


def _merged_single(old: FlowSpec, read: FlowSpec) -> FlowSpec:
    """Reread only the text of a batch script; options of the command line stay."""
    spec = old.jobs[0]
    command = read.jobs[0].command
    if not read.is_single or not isinstance(spec.command, Script) or not isinstance(command, Script):
        return old
    return replace(old, jobs=(replace(spec, command=replace(spec.command, text=command.text)),))


def _members(spec: JobSpec) -> Matrix | None:
    return None if spec.matrix is None else replace(spec.matrix, max_parallel=None)


def definition_changes(before: JobSpec, now: JobSpec, inherited: tuple[str, ...]) -> Iterator[str]:
    """What of the job is another than it was, where that is a cause to run it again."""
    if before.command != now.command or before.setup != now.setup:
        yield "its command changed"
    if names := _different(dict(before.params), dict(now.params)):
        yield f"its params changed ({', '.join(sorted(names))})"
    then, later = dict(before.env), dict(now.env)
    names = _different(then, later)
    names |= {name for name in inherited if name not in later}  # its own value hides the inherited one
    if names:
        yield f"its environment changed ({', '.join(sorted(names))})"
    if before.folder != now.folder:
        yield "its folder changed"
    if before.streams.stdin != now.streams.stdin:
        yield "its stdin changed"


def _different(before: dict[str, str], now: dict[str, str]) -> set[str]:
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


def _marks_of(reader: Reader, marks: dict[int, dict[int, Fingerprinted]], job: JobRow) -> Fingerprinted | None:
    if job.run not in marks:
        marks[job.run] = {event.job: event for event in reader.fingerprints(job.run)}
    return marks[job.run].get(job.id)


def _of_files(
    submission: Submission, spec: JobSpec, job: JobRow, worked: JobRow, marks: Fingerprinted | None
) -> Iterator[str]:
    """`worked` is the job itself, or the one of an earlier run that did its work."""
    if not spec.read_files and not spec.outputs:
        return
    values = dict(values_of(spec, job.member))
    which = Which(job.run, job.id, job.name, max(1, job.attempt), tuple(values.items()))
    folder = job_files(submission, spec, which, submission.flow.is_single).folder
    if spec.read_files:
        paths = find_files(folder, [fill(pattern, values) for pattern in spec.read_files])
        assert worked.started_at is not None
        noted = marks if marks is not None and marks.attempt == worked.attempt else None
        yield from input_changes(paths, worked.started_at, noted)
    if job.state is State.COMPLETED:
        for pattern in spec.outputs:
            filled = fill(pattern, values)
            if not find_files(folder, [filled]):
                yield f"output {filled} is missing"


def input_changes(paths: list[str], began_at: float, marks: Fingerprinted | None) -> Iterator[str]:
    """How the inputs differ from what was noted; without that, which of them changed after the job began."""
    known = {mark.path: mark for mark in marks.files} if marks is not None else {}
    for path in paths:
        info = stat_file(path)
        if info is None:
            continue
        mark = known.pop(path, None)
        if mark is None:
            if info.st_mtime > began_at:
                yield f"input {path} changed after the job began"
            elif marks is not None:
                yield f"input {path} is new"
        elif (info.st_size, info.st_mtime_ns) != (mark.size, mark.mtime_ns) and (
            info.st_size != mark.size or hash_file(path) != mark.sha256
        ):
            yield f"input {path} changed"
    for path in known:
        yield f"input {path} is gone"
