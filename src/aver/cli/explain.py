"""What happened to a job: the sentence, the timeline, the next commands.

The sentence and the next commands are `core.render`'s. The timeline is the job's events in order,
each in plain words, with the source's own words kept beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import assert_never

from aver.cli.facts import jobs_facts
from aver.cli.output.documents import Explained, Happening
from aver.cli.session import Session
from aver.core import events as ev
from aver.core import render
from aver.core.evidence import Act, ActKind, MemoryWatch, Verdict, WitnessRecord, WitnessStart
from aver.core.judge import launch_text
from aver.core.model import Request
from aver.core.reasons import PENDING_WORDS
from aver.core.signals import signal_name
from aver.core.states import State
from aver.core.testimony import parse_record, parse_start
from aver.store.rows import JobRow

WHOLE_RUN_JOBS = 2000
Said = WitnessStart | WitnessRecord | None


def explain(session: Session, job: JobRow) -> Explained:
    """Put together what the store knows about the job."""
    reader = session.found_reader(str(job.id))
    session.mask([job.run])
    happened = _events(session, job)
    attempts = reader.attempts(job.id)
    request = attempts[-1].request if attempts else session.spec(job).request
    record = _last_record(happened, job.attempt)
    verdict = job.verdict
    if verdict is None:
        sentence = render.unsettled_sentence(job.state, job.reason)
        steps = _unsettled_steps(job)
    else:
        sentence = render.sentence(verdict, record, request, _cancelled_by(happened))
        steps = render.next_steps(verdict, job.id, record, request)
    timeline = tuple(item for event in happened for item in _tell(event, job, request))
    return Explained(jobs_facts(session, [job])[0], sentence, timeline, steps)


def _events(session: Session, job: JobRow) -> list[ev.Event]:
    """The job's own events, what made it, and what was asked of the whole run; of a large run no more is read."""
    reader = session.found_reader(str(job.id))
    run = session.run_row(job.run)
    if run.jobs <= WHOLE_RUN_JOBS:
        return [stored.event for stored in reader.events(run=job.run) if _is_about(stored.event, job)]
    made: list[ev.Event] = [event for event in reader.generated(run.id) if event.first_job == job.first_job]
    if not made:
        made = [ev.RunSubmitted(run.submitted_at, run.id, run.first_job, session.submission(run.id))]
    asked = [event for event in reader.asked(run.id) if event.job is None]
    own = [stored.event for stored in reader.events(run=job.run, job=job.id)]
    return sorted([*made, *asked, *own], key=lambda event: event.at)


def parse_said(source: str, said: str) -> Said:
    """What a witness said, if it was a witness and the words are whole."""
    if source != "witness":
        return None
    try:
        words = json.loads(said)
        if not isinstance(words, dict):
            return None
        return parse_record(words) if words.get("ev") == "end" else parse_start(words)
    except ValueError:
        return None


def _is_about(event: ev.Event, job: JobRow) -> bool:
    match event:
        case ev.RunSubmitted():
            return event.first_job == job.first_job
        case ev.JobsGenerated():
            return event.first_job == job.first_job or event.job == job.id
        case ev.PersonAsked():
            return event.job in (None, job.id)
        case ev.AttemptPlanned() | ev.Observed() | ev.JobMoved():
            return event.job == job.id
        case ev.StepStarted() | ev.TaskEnded() | ev.StepEnded():
            return event.job == job.id
        case ev.RunMoved() | ev.RunPruned() | ev.Fingerprinted() | ev.FlowReplaced():
            return False
        case _:
            assert_never(event)


def _last_record(happened: list[ev.Event], attempt: int) -> WitnessRecord | None:
    for event in reversed(happened):
        if isinstance(event, ev.Observed) and event.attempt == attempt:
            said = parse_said(event.source, event.said)
            if isinstance(said, WitnessRecord):
                return said
    return None


def _cancelled_by(happened: list[ev.Event]) -> str | None:
    asked = [event.by for event in happened if isinstance(event, ev.PersonAsked) and event.what == "cancel"]
    return asked[-1] if asked else None


def _unsettled_steps(job: JobRow) -> tuple[str, ...]:
    match job.state:
        case State.PENDING if job.reason == "JobHeldUser":
            return (f"aver release {job.id}", f"aver cancel {job.id}")
        case State.PENDING:
            return (f"aver watch {job.id}", f"aver cancel {job.id}")
        case _:
            return (f"aver log {job.id} -f", f"aver watch {job.id}", f"aver cancel {job.id}")


def _tell(event: ev.Event, job: JobRow, request: Request) -> Iterator[Happening]:
    """One event in plain words; a record is told as the acts that it holds and the end."""
    match event:
        case ev.RunSubmitted():
            origin = event.submission.origin
            yield Happening(event.at, "coordinator", f"submitted by {origin.user} on {origin.host}", None, None)
        case ev.JobsGenerated():
            what = f"added to the run by job {event.job}" if event.job != job.id else "added jobs to its run"
            yield Happening(event.at, "coordinator", what, None, None)
        case ev.AttemptPlanned():
            what = f"attempt {event.attempt} planned on {event.engine}: {_asked(event.request)}"
            yield Happening(event.at, "coordinator", what, event.attempt, None)
        case ev.Observed():
            yield from _tell_observed(event)
        case ev.StepStarted():
            yield Happening(event.at, "coordinator", _step(event), event.attempt, None)
        case ev.TaskEnded():
            if event.verdict.state is not State.COMPLETED:
                because = ", because another task failed" if event.because else ""
                what = f"task {event.task} of step {event.step} {_ended(event.verdict)}{because}"
                yield Happening(event.at, "witness", what, event.attempt, event.said)
        case ev.StepEnded():
            first = "" if event.first_failed is None else f"; task {event.first_failed} failed first"
            what = f"step {event.step} {_ended(event.verdict)}{first}"
            yield Happening(event.at, "judge", what, event.attempt, None)
        case ev.JobMoved():
            yield Happening(event.at, "coordinator", _moved(event.state, event.reason), None, None)
        case ev.PersonAsked():
            detail = f" ({event.detail})" if event.detail else ""
            whole = " for the whole run" if event.job is None else ""
            yield Happening(event.at, "person", f"{event.by} asked: {event.what}{detail}{whole}", None, None)
        case ev.RunMoved() | ev.RunPruned() | ev.Fingerprinted() | ev.FlowReplaced():
            return
        case _:
            assert_never(event)


def _tell_observed(event: ev.Observed) -> Iterator[Happening]:
    said = parse_said(event.source, event.said)
    match said:
        case WitnessStart():
            what = f"started as process {said.pid}{_watched(said.watch)}"
            yield Happening(said.at, event.source, what, event.attempt, event.said)
        case WitnessRecord():
            for act in said.acts:
                yield Happening(said.started_at + act.at_s, event.source, _act(act), event.attempt, None)
            yield Happening(said.started_at + said.elapsed_s, event.source, _end(said), event.attempt, event.said)
        case None:
            yield Happening(
                event.at, event.source, event.said or _moved(event.state, event.reason), event.attempt, event.said
            )
        case _:
            assert_never(said)
    if event.verdict is not None:
        what = (
            f"verdict: {event.verdict.state} {render.exit_text(event.verdict.exit)} {render.reason_text(event.reason)}"
        )
        yield Happening(event.at, "judge", what, event.attempt, None)
    if event.job_state is not None and event.job_state is not event.state:
        yield Happening(event.at, "coordinator", _moved(event.job_state, event.job_reason or ""), event.attempt, None)


def _step(event: ev.StepStarted) -> str:
    tasks = f"{event.spec.tasks} task{'s' if event.spec.tasks != 1 else ''}"
    return f"step {event.step} ({event.spec.name}) started with {tasks}"


def _ended(verdict: Verdict) -> str:
    return f"ended {verdict.state} with {render.exit_words(verdict.exit)}"


def _asked(request: Request) -> str:
    parts = [f"{request.cpus} cpu{'s' if request.cpus != 1 else ''}"]
    if request.gpus:
        parts.append(f"{request.gpus} gpu{'s' if request.gpus != 1 else ''}")
    parts.append(
        "no memory limit" if request.mem_bytes is None else f"{render.limit_words(request.mem_bytes)} of memory"
    )
    parts.append("no time limit" if request.time_s is None else f"{render.duration_words(request.time_s)} of time")
    return ", ".join(parts)


def _moved(state: State, reason: str) -> str:
    if state is State.PENDING:
        words = PENDING_WORDS.get(reason)
        return f"{state} ({reason}): {words}" if words else f"{state} ({render.reason_text(reason)})"
    return f"{state} ({reason})" if reason and reason != "None" else str(state)


def _watched(watch: MemoryWatch) -> str:
    match watch:
        case MemoryWatch.CGROUP1:
            return ", memory watched by a cgroup (v1)"
        case MemoryWatch.CGROUP2:
            return ", memory watched by a cgroup (v2)"
        case MemoryWatch.SAMPLED:
            return ", memory watched by sampling"
        case MemoryWatch.NONE:
            return ""
        case _:
            assert_never(watch)


def _act(act: Act) -> str:
    sent = f"sent {signal_name(act.signal)}" if act.signal else "acted"
    match act.kind:
        case ActKind.WARN:
            return f"{sent} as the warning before the time limit"
        case ActKind.TIME:
            return f"{sent} to all its processes: the time limit passed"
        case ActKind.CANCEL:
            return f"{sent} to all its processes: it was cancelled"
        case ActKind.MEMORY:
            return f"{sent} to all its processes: the memory limit was passed"
        case ActKind.SIGNAL:
            return f"{sent} as asked"
        case ActKind.KILL:
            return f"{sent} to all its processes: the kill wait passed"
        case _:
            assert_never(act.kind)


def _end(record: WitnessRecord) -> str:
    if record.launch is not None:
        return f"could not start: {launch_text(record.launch)}"
    parts = [f"ended with {render.exit_words(record.exit)} after {render.duration_words(record.elapsed_s)}"]
    if record.oom_kills:
        parts.append(f"the kernel killed {record.oom_kills} of its processes for memory")
    if record.peak_bytes is not None:
        parts.append(f"peak memory {render.bytes_words(record.peak_bytes)}")
    if record.left_over:
        parts.append(f"{record.left_over} processes that it left behind were killed")
    if record.got:
        parts.append(f"the witness got {', '.join(signal_name(number) for number in record.got)} and passed it on")
    return "; ".join(parts)
