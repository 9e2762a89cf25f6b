"""All of a run, read from the store with the ends of its logs, every text masked: for the report and the exports."""

from __future__ import annotations

import os
import stat
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from shlex import join

from aver.cli.explanation import cancelled_by
from aver.cli.facts import files_of
from aver.cli.session import Session
from aver.cli.steps import warnings_of_steps
from aver.client.use.series import AttemptUse, read_use
from aver.model.events import Event, Observed
from aver.model.evidence import WitnessRecord
from aver.model.job import FlowSpec
from aver.model.record import replace
from aver.model.states import State
from aver.render import verdict as render
from aver.render.masking import Masking
from aver.render.timeline import Told, Transition, is_about, parse_said, transitions
from aver.report.story import LogEnd, Story, has_failed
from aver.store.read.reader import Reader
from aver.store.read.rows import AttemptRow, JobRow, RunRow

WHOLE_JOBS = 1000  # runs of no more jobs have the evidence of all of them
MOST_EVIDENCE = 300  # of larger runs: of this many that did not complete
MOST_LOGS = 60
MOST_SERIES = 60
LOG_BYTES = 4096
LOG_LINES = 40


def find_run(session: Session, text: str) -> RunRow:
    """The run that an address names; a job stands for its run."""
    found = session.find(text)
    return found if isinstance(found, RunRow) else session.run_row(found[0].run)


def collect(session: Session, run: RunRow) -> Story:
    """Read everything; secrets of the run are masked in it and in all that is written from now on."""
    reader = session.found_reader(str(run.id))
    masking = session.mask([run.id])
    flow, offsets = _whole_flow(session, reader, run)
    jobs = reader.jobs(run.id)
    attempts: dict[int, list[AttemptRow]] = defaultdict(list)
    for attempt in reader.attempts_of_run(run.id):
        attempts[attempt.job].append(attempt)
    chosen = jobs if len(jobs) <= WHOLE_JOBS else [job for job in jobs if has_failed(job)][:MOST_EVIDENCE]
    happened = _events(reader, run, jobs, chosen)
    failed = [job for job in jobs if has_failed(job)]
    origin = session.submission(run.id).origin
    story = Story(
        run=run,
        flow=flow,
        offsets=offsets,
        jobs=jobs,
        attempts=attempts,
        user=origin.user,
        host=origin.host,
        typed=masking.whole(join(origin.command)),
        now=time.time(),
        sentences={job.id: masking.whole(_sentence(job, happened[job.id], attempts[job.id])) for job in chosen},
        evidence={job.id: _evidence(happened[job.id], job, masking) for job in chosen},
        logs=_logs(session, failed, masking),
        use=_use(session, jobs, attempts),
        warnings=warnings_of_steps(session, jobs),
    )
    return _masked(story, masking)


def _use(
    session: Session, jobs: Sequence[JobRow], attempts: Mapping[int, Sequence[AttemptRow]]
) -> dict[int, AttemptUse]:
    """Memory and CPUs over time of the newest attempts; of a large run the report has no row for each job."""
    newest = [attempts[job.id][-1] for job in jobs if attempts.get(job.id)]
    if len(newest) > MOST_SERIES:
        return {}
    found = {one.job: read_use(session.home, jobs[0].run, one.job, one.attempt, one.started_at) for one in newest}
    return {job: use for job, use in found.items() if use is not None}


def _whole_flow(session: Session, reader: Reader, run: RunRow) -> tuple[FlowSpec, dict[int, int]]:
    flow = session.submission(run.id).flow
    offsets = {run.first_job: 0}
    specs = list(flow.jobs)
    for batch in reader.generated(run.id):
        offsets[batch.first_job] = len(specs)
        specs += batch.flow.jobs
    return replace(flow, jobs=tuple(specs)), offsets


def _events(
    reader: Reader, run: RunRow, jobs: Sequence[JobRow], chosen: Sequence[JobRow]
) -> defaultdict[int, list[Event]]:
    """The events of each chosen job: of a small run all are read once, of a large one those of each chosen job."""
    found: defaultdict[int, list[Event]] = defaultdict(list)
    if len(chosen) < len(jobs):
        for job in chosen:
            found[job.id] = [stored.event for stored in reader.events(job=job.id)]
        return found
    for stored in reader.events(run=run.id):
        number = getattr(stored.event, "job", None)
        if number is not None and not hasattr(stored.event, "flow"):
            found[number].append(stored.event)
            continue
        for job in jobs:
            if is_about(stored.event, job.id, job.first_job):
                found[job.id].append(stored.event)
    return found


def _sentence(job: JobRow, happened: Sequence[Event], attempts: Sequence[AttemptRow]) -> str:
    verdict = job.verdict
    if verdict is None:
        return "" if job.state.is_settled else render.unsettled_sentence(job.state, job.reason)
    said = [
        parse_said(event.source, event.said)
        for event in happened
        if isinstance(event, Observed) and event.attempt == job.attempt
    ]
    records = [one for one in said if isinstance(one, WitnessRecord)]
    request = attempts[-1].request if attempts else None
    return render.sentence(verdict, records[-1] if records else None, request, cancelled_by(happened))


def _evidence(happened: Sequence[Event], job: JobRow, masking: Masking) -> list[Transition]:
    found = list(transitions(happened, job.id))
    if not masking:
        return found
    return [replace(one, told=_masked_told(one.told, masking)) for one in found]


def _masked_told(told: Told, masking: Masking) -> Told:
    return replace(told, what=masking.whole(told.what), said=None if told.said is None else masking.whole(told.said))


def _logs(session: Session, failed: Sequence[JobRow], masking: Masking) -> dict[int, LogEnd]:
    logs: dict[int, LogEnd] = {}
    for job in failed:
        if len(logs) == MOST_LOGS:
            break
        if job.attempt and job.state is not State.SKIPPED:
            files = files_of(session, job, job.attempt)
            found = (files.stderr and read_end(files.stderr, masking)) or read_end(files.stdout, masking)
            if found:
                logs[job.id] = found
    return logs


def read_end(path: str, masking: Masking) -> LogEnd | None:
    """The last lines of a file; None of one that is empty, missing or no regular file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES * 2))  # a secret may begin before the end that is shown
            data = masking.whole(file.read() or b"")[-LOG_BYTES:]
    except (OSError, ValueError):
        return None
    lines = data.splitlines()
    if not lines:
        return None
    kept = lines[-LOG_LINES:]
    text = b"\n".join(kept).decode("utf-8", "replace")
    return LogEnd(masking.whole(path), text, len(kept) < len(lines) or size > LOG_BYTES)


def _masked(story: Story, masking: Masking) -> Story:
    """Names, details and warnings without secrets."""
    if not masking:
        return story
    hide = masking.whole
    return replace(
        story,
        run=story.run.changed(name=hide(story.run.name), folder=hide(story.run.folder)),
        flow=replace(story.flow, jobs=tuple(replace(spec, name=hide(spec.name)) for spec in story.flow.jobs)),
        jobs=[
            job.changed(
                name=hide(job.name),
                reason=hide(job.reason),
                detail=hide(job.detail),
                warnings=tuple(hide(one) for one in job.warnings),
            )
            for job in story.jobs
        ],
        attempts={
            number: [one.changed(detail=hide(one.detail), reason=hide(one.reason)) for one in rows]
            for number, rows in story.attempts.items()
        },
        warnings={number: [hide(one) for one in texts] for number, texts in story.warnings.items()},
    )
