"""The timeline of a job, from its events: a line for each report of a source and for each consequence.

Pure text: it reads no store and decides nothing. A witness's record becomes a line for each act in it and one for the
end. The source's own words are kept beside ours.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from aver.judge.files import missing_input
from aver.judge.local import launch_text
from aver.judge.witness_record import parse_record, parse_start
from aver.model import events as ev
from aver.model.codec import loads
from aver.model.evidence import Act, ActKind, FilesSeen, MemoryWatch, Verdict, WitnessRecord, WitnessStart
from aver.model.job import Allocation, Request
from aver.model.reasons import DEADLINE, NONE
from aver.model.record import Record
from aver.model.signals import signal_name
from aver.model.slurm_names import STEP_WAIT
from aver.model.states import State
from aver.render import verdict as render

Said = WitnessStart | WitnessRecord | None


class Told(Record):
    """One line: when, who said it, what it means, of which attempt, and the words as they came."""

    at: float
    source: str
    what: str
    attempt: int | None = None
    said: str | None = None


class Transition(Record):
    """One line with the state that it led to; None where it led to no other."""

    told: Told
    state: State | None = None


def transitions(events: Iterable[ev.Event], job: int) -> Iterator[Transition]:
    """The story of a job, its events in order: each line with the state of the job after it.

    The end of an attempt that is followed by another one has the attempt's own state, and then the job's.
    """
    newest = 0
    for event in events:
        lines = list(tell(event, job))
        after: tuple[State, ...] = ()
        match event:
            case ev.RunSubmitted():
                after = (State.PENDING,)
            case ev.JobsGenerated():
                after = (State.PENDING,) if event.job != job else ()
            case ev.AttemptPlanned():
                newest = max(newest, event.attempt)
            case ev.Observed():
                of_job = event.state if event.job_state is None else event.job_state
                after = (event.state,) if event.attempt < newest or of_job is event.state else (event.state, of_job)
            case ev.JobMoved():
                after = (event.state,)
            case _:
                pass
        states = [*[None] * (len(lines) - len(after)), *after]
        if isinstance(event, ev.Observed) and event.is_start:
            states[0] = State.RUNNING
        yield from (Transition(told, state) for told, state in zip(lines, states, strict=False))


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


def is_about(event: ev.Event, job: int, first_job: int) -> bool:
    """Whether the event belongs to the story of this job; `first_job` is that of the flow that made it."""
    match event:
        case ev.RunSubmitted():
            return event.first_job == first_job
        case ev.JobsGenerated():
            return event.first_job == first_job or event.job == job
        case ev.PersonAsked():
            return event.job in (None, job)
        case ev.AttemptPlanned() | ev.GpusGiven() | ev.Observed() | ev.JobMoved():
            return event.job == job
        case ev.StepStarted() | ev.TaskEnded() | ev.StepEnded():
            return event.job == job
        case ev.JobsEnded():
            return event.first <= job <= event.last
        case ev.RunMoved() | ev.RunPruned() | ev.Fingerprinted() | ev.FlowReplaced() | ev.GpusGiven() | ev.PoolSized():
            return False
        case _:
            assert_never(event)


def tell(event: ev.Event, job: int) -> Iterator[Told]:
    """Describe one event; a witness's record becomes a line for each act in it and one for the end."""
    match event:
        case ev.RunSubmitted():
            origin = event.submission.origin
            yield Told(event.at, "coordinator", f"submitted by {origin.user} on {origin.host}", None, None)
        case ev.JobsGenerated():
            what = f"added to the run by job {event.job}" if event.job != job else "added jobs to its run"
            yield Told(event.at, "coordinator", what, None, None)
        case ev.AttemptPlanned():
            what = f"attempt {event.attempt} planned on {event.engine}: {_asked(event.request)}"
            yield Told(event.at, "coordinator", what, event.attempt, None)
        case ev.GpusGiven():
            what = f"gets gpu {', '.join(str(gpu) for gpu in event.gpus)}"
            yield Told(event.at, "coordinator", what, event.attempt, None)
        case ev.Observed():
            yield from _tell_observed(event)
        case ev.StepStarted():
            yield Told(event.at, "coordinator", _step(event), event.attempt, None)
        case ev.TaskEnded():
            if event.verdict.state is not State.COMPLETED:
                because = ", because of another task" if event.because else ""
                what = f"task {event.task} of step {event.step} {_ended(event.verdict)}{because}"
                yield Told(event.at, "witness", what, event.attempt, event.said)
        case ev.StepEnded():
            first = "" if event.first_failed is None else f"; task {event.first_failed} failed first"
            what = f"step {event.step} {_ended(event.verdict)}{first}"
            yield Told(event.at, "judge", what, event.attempt, None)
        case ev.JobMoved():
            yield Told(event.at, "coordinator", render.moved_words(event.state, event.reason), None, None)
        case ev.JobsEnded():
            yield from tell(event.move_of(job), job)
        case ev.PersonAsked(what="prune"):
            source = "coordinator" if event.by == "retention" else "person"
            yield Told(event.at, source, f"logs of the run were cut by {event.by}: {event.detail}")
        case ev.PersonAsked(what="allocate"):
            wish = loads(Allocation, event.detail)
            noun = "allocation" if wish.count == 1 else "allocations"
            what = f"{event.by} asked for {wish.count} more {noun}: {shlex.join(wish.words)}"
            yield Told(event.at, "person", what, None, None)
        case ev.PersonAsked() if event.what == STEP_WAIT:
            what = f"step {event.detail}: the time that --wait gives is over; its other tasks are ended"
            yield Told(event.at, "coordinator", what, None, None)
        case ev.PersonAsked():
            detail = f" ({event.detail})" if event.detail else ""
            whole = " for the whole run" if event.job is None else ""
            reason = f"; {event.reason}" if event.reason else ""
            yield Told(event.at, "person", f"{event.by} asked: {event.what}{detail}{whole}{reason}", None, None)
        case ev.RunMoved() | ev.RunPruned() | ev.Fingerprinted() | ev.FlowReplaced() | ev.GpusGiven() | ev.PoolSized():
            return
        case _:
            assert_never(event)


def tell_folded(events: Sequence[ev.Event], job: int) -> Iterator[Told]:
    """All events in plain words; what a job waited for, one thing after the other, is one line."""
    waits: list[ev.JobMoved] = []
    for event in events:
        if isinstance(event, ev.JobMoved) and event.state is State.PENDING:
            waits.append(event)
            continue
        if waits:
            yield _waited(waits, event.at)
            waits = []
        yield from tell(event, job)
    if waits:
        yield _waited(waits, None)


def _waited(waits: Sequence[ev.JobMoved], until: float | None) -> Told:
    words = " → ".join(dict.fromkeys(render.reason_text(event.reason) for event in waits))
    if until is None:
        return Told(waits[0].at, "coordinator", f"waits: {words}")
    return Told(waits[0].at, "coordinator", f"waited {render.duration_words(until - waits[0].at)}: {words}")


def in_order(told: Iterable[Told]) -> list[Told]:
    """By time, as far as one attempt goes: a witness tells at the end what it did before.

    Only the acts of a record are moved, and not to before the attempt: a wall clock may be set back.
    """
    lines: list[Told] = []
    for one in told:
        at = len(lines)
        while at and one.source == "witness" and _is_before(one, lines[at - 1]):
            at -= 1
        lines.insert(at, one)
    return lines


def _is_before(one: Told, other: Told) -> bool:
    return one.at < other.at and other.attempt in (None, one.attempt)


def _tell_observed(event: ev.Observed) -> Iterator[Told]:
    said = parse_said(event.source, event.said)
    match said:
        case WitnessStart():
            yield Told(said.at, event.source, _start(said.pid, said.watch), event.attempt, event.said)
        case WitnessRecord():
            if event.is_start:  # its words are those of the end
                yield Told(said.started_at, event.source, _start(said.pid, said.watch), event.attempt, None)
            for act in said.acts:
                yield Told(
                    said.started_at + act.at_s, event.source, _act(act, _is_at_deadline(event)), event.attempt, None
                )
            yield Told(said.started_at + said.elapsed_s, event.source, _end(said), event.attempt, event.said)
            if said.files is not None:
                yield Told(max(said.files.at, said.started_at + said.elapsed_s), event.source, _look(said.files),
                           event.attempt, None)  # fmt: skip
        case None:
            yield Told(event.at, event.source, _plain(event), event.attempt, event.said)
        case _:
            assert_never(said)
    if event.verdict is not None:
        why = "" if event.reason in ("", NONE) else f" {event.reason}"
        has_begun = event.usage is not None and event.usage.started_at is not None
        absent = render.absent_text(event.verdict.state, has_begun, event.verdict.reason)
        exit_text = absent if event.verdict.exit is None else render.exit_text(event.verdict.exit)
        what = f"verdict: {event.verdict.state} {exit_text}{why}"
        yield Told(event.at, "judge", what, event.attempt, None)
    if event.job_state is not None and event.job_state is not event.state:
        reason = event.reason if event.job_reason is None else event.job_reason  # None: the verdict's own
        yield Told(event.at, "coordinator", render.moved_words(event.job_state, reason), event.attempt, None)


def _plain(event: ev.Observed) -> str:
    """The words of who is not a witness; of what the coordinator notes as JSON, what the judge made of it."""
    if event.source == "coordinator" and event.said.startswith("{") and event.verdict and event.verdict.detail:
        return event.verdict.detail
    return event.said or render.moved_words(event.state, event.reason)


def _step(event: ev.StepStarted) -> str:
    tasks = f"{event.spec.tasks} task{'s' if event.spec.tasks != 1 else ''}"
    least = "at least " if event.spec.is_open else ""
    return f"step {event.step} ({event.spec.name}) started with {least}{tasks}"


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


def _start(pid: int, watch: MemoryWatch) -> str:
    return f"started as process {pid}{_watched(watch)}"


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


def _is_at_deadline(event: ev.Observed) -> bool:
    return event.verdict is not None and event.verdict.reason == DEADLINE


def _act(act: Act, at_deadline: bool) -> str:
    sent = f"sent {signal_name(act.signal)}" if act.signal else "acted"
    match act.kind:
        case ActKind.WARN:
            return f"{sent} as the warning before the time limit"
        case ActKind.TIME:
            to = " to all its processes" if act.signal else ", it had ended"
            return f"{sent}{to}: the {'deadline' if at_deadline else 'time limit'} passed"
        case ActKind.JOB_TIME:
            return f"{sent} to all its processes: the job's time limit passed"
        case ActKind.CANCEL:
            return f"{sent} to all its processes: it was cancelled"
        case ActKind.MEMORY:
            return f"{sent} to all its processes: the memory limit was passed"
        case ActKind.SIGNAL:
            often = (
                "" if act.last_s is None else f", {act.times} times in {render.duration_words(act.last_s - act.at_s)}"
            )
            return f"{sent} as asked{often}"
        case ActKind.KILL:
            return f"{sent} to all its processes: the kill wait passed"
        case _:
            assert_never(act.kind)


def _whose(is_of_one: bool) -> str:
    return " (its largest process, resident)" if is_of_one else " (all its processes)"


def _look(files: FilesSeen) -> str:
    """`looked at 3 outputs: wrote 2 files (a, b); 1 is missing`."""
    noun = "output" if files.outputs == 1 else "outputs"
    wrote = f"wrote {files.written} file{'' if files.written == 1 else 's'}"
    names = f" ({', '.join(files.names)}{', …' if files.written > len(files.names) else ''})" if files.names else ""
    parts = [wrote + ("" if files.removed else names)]
    parts += [
        f"{word}: {', '.join(some)}"
        for word, some in (("missing", files.missing), ("not written", files.old), ("not to be seen", files.unseen))
        if some
    ]
    if files.removed:
        parts.append(f"removed {files.removed}{names}")
    return f"looked at {files.outputs} {noun}: {'; '.join(parts)}"


def _end(record: WitnessRecord) -> str:
    if record.launch is not None:
        said = missing_input(record.launch).detail if record.launch.operation == "input" else ""
        return said or f"could not start: {launch_text(record.launch)}"
    parts = [f"ended with {render.exit_words(record.exit)} after {render.duration_words(record.elapsed_s)}"]
    if record.oom_kills:
        parts.append(f"the kernel killed {record.oom_kills} of its processes for memory")
    if record.oomd_kills:
        parts.append(f"systemd-oomd killed {record.oomd_kills} of its processes for memory")
    if record.highest is not None:
        parts.append(f"peak memory {render.bytes_words(record.highest[0])}{_whose(record.highest[1])}")
    if record.is_cpu_least:
        parts.append("used at least the CPU time shown: some of its children were waited for by nobody")
    if record.left_over:
        left = "1 process" if record.left_over == 1 else f"{record.left_over} processes"
        parts.append(f"killed {left} that it left behind")
    if record.got:
        parts.append(f"the witness got {', '.join(signal_name(number) for number in record.got)} and passed it on")
    return "; ".join(parts)


def last_record(happened: Sequence[ev.Event], attempt: int) -> WitnessRecord | None:
    """The exit record of this attempt, if its witness left one."""
    for event in reversed(happened):
        if isinstance(event, ev.Observed) and event.attempt == attempt:
            said = parse_said(event.source, event.said)
            if isinstance(said, WitnessRecord):
                return said
    return None
