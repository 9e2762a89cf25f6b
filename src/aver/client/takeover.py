"""Which jobs of a new run need not run, since an earlier run did their work and nothing that they rest on changed.

Read-only: the store, and the files. A job is taken over only if it is COMPLETED there, with the same command, params,
environment, folder, stdin and needs, if its inputs have the content and its outputs the size and time that were noted
there, and if all that it needs is taken over too. Every other job runs, for a cause in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from aver.client import vault
from aver.client.changes import definition_changes, input_changes, needed_by
from aver.client.input_files import find_files, stat_file
from aver.client.job_files import Which, has_env, job_files, read_env
from aver.errors import UsageError
from aver.home import Home
from aver.model.events import Fingerprinted
from aver.model.job import JobSpec, Submission
from aver.model.reasons import FromRun, parse_from_run
from aver.model.record import Record
from aver.model.states import State
from aver.plan.matrix import FlowIndex, values_of
from aver.plan.placeholders import fill
from aver.plan.planner import Plan
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow, RunRow


class Choice(Record):
    """One job of the new run: `origin` is where it is taken from; None: it runs, and `why` says why."""

    index: int
    name: str
    origin: FromRun | None
    why: str = ""


class Takeover(Record):
    """What a new run takes from run `since`, by the jobs' places in the new run."""

    since: int
    choices: tuple[Choice, ...]

    @property
    def taken(self) -> tuple[tuple[int, int], ...]:
        """For the submission: the place of each job that is taken over, and the number of the job that did the work."""
        return tuple((one.index, one.origin.job) for one in self.choices if one.origin is not None)


def newest_run(reader: Reader, submission: Submission) -> int | None:
    """The newest run of this flow's name and file from this folder; None: there is none."""
    for row in reader.runs():
        if row.name != submission.flow.name or row.is_single is not submission.flow.is_single:
            continue
        origin = reader.origin(row.id)
        if origin is not None and (origin.folder, origin.file) == (submission.origin.folder, submission.origin.file):
            return row.id
    return None


def find_takeover(
    home: Home, reader: Reader, submission: Submission, since: int, environment: Sequence[str]
) -> Takeover:
    """Compare the submission with an earlier run; UsageError if that is not there, or is not settled.

    Of the environment, NAME=VALUE each, the variables count that --env names now or did then.
    """
    row, then = reader.run(since), reader.submission(since)
    if row is None or then is None:
        raise UsageError(f"run {since} does not exist; `aver runs` lists them")
    if not row.state.is_settled:
        raise UsageError(f"run {since} is {row.state}: verdicts are taken over from a settled run; aver watch {since}")
    flow, _ = vault.seal(home, submission.flow)
    earlier = _Earlier(reader, row, then, _other_variables(home, submission, then, since, environment))
    index = FlowIndex(flow)
    names = list(index.names())
    why: dict[int, str] = {}
    origins: dict[int, FromRun] = {}
    for number, name in enumerate(names):
        job = earlier.jobs.get(name)
        if job is None:
            why[number] = f"run {since} has no such job"
            continue
        origins[number] = parse_from_run(job.reason) or FromRun(since, job.id)
        if causes := list(_causes(earlier, submission, number, index, job)):
            why[number] = "; ".join(causes)
    plan = Plan(flow)
    again = {*why, *(lower for one in why for lower in plan.below(one))}
    running = [names[one] for one in sorted(again)]
    choices = []
    for number, name in enumerate(names):
        if number not in again:
            choices.append(Choice(number, name, origins[number]))
        else:
            below = f"it needs {needed_by(index.spec(number), running)}, which runs"
            choices.append(Choice(number, name, None, why.get(number, below)))
    return Takeover(since, tuple(choices))


def _other_variables(
    home: Home, submission: Submission, then: Submission, since: int, environment: Sequence[str]
) -> tuple[str, ...]:
    names = _declared(submission.origin.command) | _declared(then.origin.command)
    if not names:
        return ()
    now = dict(pair.partition("=")[::2] for pair in environment)
    before = read_env(home, since) if has_env(home, since) else {}
    return tuple(name for name in sorted(names) if name not in before or before[name] != now.get(name))


def _declared(typed: Sequence[str]) -> set[str]:
    """The variables that `--env NAME=VALUE` names in what was typed, before any `--`."""
    words = list(takewhile(lambda word: word != "--", typed))
    pairs = [after for word, after in pairwise(words) if word == "--env"]
    pairs += [word.removeprefix("--env=") for word in words if word.startswith("--env=")]
    return {pair.partition("=")[0] for pair in pairs}


class _Earlier:
    """The earlier run, and what was noted of the files of its jobs."""

    def __init__(self, reader: Reader, row: RunRow, submission: Submission, variables: tuple[str, ...]) -> None:
        self.number = row.id
        self.other_variables = variables  # that all jobs inherit, and that have other values now
        self.submission = submission
        self.jobs = {job.name: job for job in reader.jobs(row.id) if job.first_job == row.first_job}
        self._reader = reader
        self._marks: dict[int, dict[int, Fingerprinted]] = {}

    def worked(self, job: JobRow) -> JobRow | None:
        """The job that did the work; None: its run is gone."""
        origin = parse_from_run(job.reason)
        return job if origin is None else self._reader.job(origin.job)

    def marks(self, job: JobRow) -> Fingerprinted | None:
        """What was noted when this job completed."""
        if job.run not in self._marks:
            self._marks[job.run] = {event.job: event for event in self._reader.fingerprints(job.run)}
        found = self._marks[job.run].get(job.id)
        return found if found is not None and found.attempt == job.attempt else None


def _causes(earlier: _Earlier, submission: Submission, number: int, index: FlowIndex, job: JobRow) -> Iterator[str]:
    """Why the job runs; nothing: it can be taken over, as far as it goes by itself."""
    before, now = earlier.submission.flow.jobs[job.spec], index.spec(number)
    since = f"since run {earlier.number}"
    if job.state is not State.COMPLETED:
        yield f"it is {job.state} in run {earlier.number}"
        return
    if now.generates is not None:
        yield "it generates jobs"
        return
    yield from (f"{text} {since}" for text in definition_changes(before, now, earlier.other_variables))
    if (before.needs, before.condition, before.after) != (now.needs, now.condition, now.after):
        yield f"its needs changed {since}"
    member = number - index.jobs_of(index.locate(number)[0])[0]
    values = values_of(now, member)
    if values_of(before, job.member) != values:
        yield f"its values changed {since}"
    if before.folder == now.folder and earlier.submission.origin.folder != submission.origin.folder:
        yield f"its folder changed {since}"
    if now.read_files or now.written_files:
        which = Which(job.run, job.id, job.name, 1, values)
        folder = job_files(submission, now, which, submission.flow.is_single).folder
        yield from _file_causes(earlier, now, job, folder, dict(values))


def _file_causes(earlier: _Earlier, spec: JobSpec, job: JobRow, folder: str, values: dict[str, str]) -> Iterator[str]:
    worked = earlier.worked(job)
    marks = None if worked is None else earlier.marks(worked)
    if worked is None or marks is None or marks.outputs is None:
        yield f"its files were not noted in run {earlier.number if worked is None else worked.run}"
        return
    since = f"since run {worked.run}"
    if spec.read_files:
        paths = find_files(folder, [fill(pattern, values) for pattern in spec.read_files])
        assert worked.started_at is not None  # it has been noted
        yield from (f"{text} {since}" for text in input_changes(paths, worked.started_at, marks))
    for pattern in spec.outputs:
        if not find_files(folder, [fill(pattern, values)]):
            yield f"output {fill(pattern, values)} is missing"
    for mark in marks.outputs:
        info = stat_file(mark.path)
        if info is not None and (info.st_size, info.st_mtime_ns) != (mark.size, mark.mtime_ns):
            yield f"output {mark.path} changed {since}"
        elif info is None:
            yield f"output {mark.path} is gone {since}"
