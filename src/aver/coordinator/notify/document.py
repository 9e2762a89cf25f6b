"""What a notification says: one JSON document, with the keys that `aver show --json` has for a job and a run.

It holds no environment values and no command lines. Values of secret names are masked in it.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from aver.client.documents import job_facts, run_facts
from aver.home import Home
from aver.judge.step import fold_derived
from aver.judge.witness_record import parse_record
from aver.model import reasons
from aver.model.codec import encode, parse_object
from aver.model.events import Event, JobMoved, Observed, RunMoved
from aver.model.evidence import Verdict, WitnessRecord
from aver.model.job import NotifyOn
from aver.model.record import Record, replace
from aver.model.states import State
from aver.render import verdict as render
from aver.render.masking import Masking
from aver.store.read.reader import Reader
from aver.store.read.rows import AttemptRow, JobRow, RunRow
from aver.store.read.step_warnings import step_warnings


class Notice(Record):
    """`subject` is for our own log: numbers and states alone."""

    on: str
    at: float
    run: int
    job: int | None
    state: str
    subject: str
    document: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.document)


def notice_of(home: Home, reader: Reader, event: Event, on: str) -> Notice | None:
    """None when the store has forgotten what it is about."""
    run = reader.run(event.run)
    if run is None:
        return None
    head = {"kind": "notification", "on": on, "home": os.fspath(home.path), "host": socket.gethostname()}
    if isinstance(event, RunMoved):
        is_now = (run.round, run.state) == (event.round, event.state)  # else it has gone on: the counts are of that
        counts = {state.value: count for state, count in reader.counts(run.id).items()} if is_now else None
        took = f" in {render.duration_words(event.at - run.submitted_at)}"
        words = "" if counts is None else ": " + ", ".join(f"{count} {state}" for state, count in counts.items())
        left = f"; not selected: {', '.join(run.unselected)}" if run.unselected else ""
        sentence = f"Run {run.id} ({run.name}) is {event.state}{words}{took}{left}."
        moved = run.changed(state=event.state, round=event.round, ended_at=event.at)
        facts = encode(run_facts(moved, {})) | {"counts": counts}
        document = {**head, "sentence": sentence, "run": facts, "job": None}
        return Notice(on, event.at, run.id, None, event.state.value, f"run {run.id} {event.state}", document)
    if not isinstance(event, (Observed, JobMoved)):
        return None
    job = reader.job(event.job)
    if job is None:
        return None
    if event.verdict is None or on == NotifyOn.STARTED:
        return _started(head, event, run, job, on) if isinstance(event, Observed) else None
    verdict = event.verdict
    number = event.attempt if isinstance(event, Observed) else job.attempt
    attempt = next((one for one in reader.attempts(job.id) if one.attempt == number), None)
    sentence = render.sentence(verdict, _record(event), None if attempt is None else attempt.request)
    if isinstance(event, Observed) and attempt is not None:
        job = _as_it_ended(reader, job, attempt)
    peak = None if attempt is None else attempt.peak_bytes
    warned = step_warnings(reader, [job]).get(job.id, ())
    facts = encode(job_facts(_with_verdict(job, verdict), run.is_single, warned, peak))
    document = {**head, "sentence": sentence, "run": encode(run_facts(run, {})) | {"counts": None}, "job": facts}
    return Notice(on, event.at, run.id, job.id, verdict.state.value, f"job {job.id} {verdict.state}", document)


def _started(head: dict[str, Any], event: Observed, run: RunRow, job: JobRow, on: str) -> Notice:
    """The job has begun; by now it may have ended, which is told by itself."""
    began = job.changed(
        attempt=event.attempt, state=State.RUNNING, reason=reasons.NONE, exit=None, verified=None, source=event.source,
        started_at=event.usage.started_at if event.usage is not None else None, ended_at=None, elapsed_s=None,
    )  # fmt: skip
    facts = encode(job_facts(began, run.is_single))
    sentence = f"Job {job.id} ({job.name}) has started."
    document = {**head, "sentence": sentence, "run": encode(run_facts(run, {})) | {"counts": None}, "job": facts}
    return Notice(on, event.at, run.id, job.id, State.RUNNING.value, f"job {job.id} {State.RUNNING}", document)


def _as_it_ended(reader: Reader, job: JobRow, attempt: AttemptRow) -> JobRow:
    """The job with what is of this attempt: by now it may have gone on."""
    steps = [step for step in reader.steps(job.id, attempt.attempt) if step.state.is_settled]
    return job.changed(
        attempt=attempt.attempt,
        exit=attempt.exit,
        derived=fold_derived(step.derived for step in steps),
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        elapsed_s=attempt.elapsed_s,
    )


def _with_verdict(job: JobRow, verdict: Verdict) -> JobRow:
    """The verdict is the event's: by now the job may have gone on."""
    return job.changed(
        state=verdict.state,
        reason=verdict.reason,
        exit=verdict.exit,
        verified=verdict.verified,
        source=verdict.source,
        warnings=verdict.warnings,
        detail=verdict.detail,
    )


def _record(event: Observed | JobMoved) -> WitnessRecord | None:
    if not isinstance(event, Observed) or event.source != "witness":
        return None
    try:
        return parse_record(parse_object(event.said.encode()))
    except ValueError:
        return None


def masked(notice: Notice, masking: Masking) -> Notice:
    """The notice with the mask in place of each secret."""
    return replace(notice, document=masking.document(notice.document)) if masking else notice
