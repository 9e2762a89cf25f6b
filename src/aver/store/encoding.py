"""Events as the text that the table `events` keeps, and back.

`at`, `run`, `job` and `attempt` are columns; `data` holds the other fields as plain ASCII JSON. What a source said is a
column of its own, where that can hold it: most of it is JSON, whose quotes would be escaped. What an event says itself
(state, reason, source) is not repeated in its verdict, and the defaults of a plan are left out.
"""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any, get_args

from aver.judge.step import task_cause
from aver.judge.witness_record import parse_record
from aver.model.codec import decode, dumps, encode, loads
from aver.model.events import Event, Usage
from aver.model.evidence import TaskCause, Verdict
from aver.model.job import JobSpec
from aver.model.states import UNSETTLED, State
from aver.store.columns import MEASURED, VERDICT

EVENT_CLASSES: dict[str, type[Event]] = {one.__name__: one for one in get_args(Event)}
_COLUMNS = ("at", "run", "job", "attempt")
_SAID_ONCE = ("state", "reason", "source")
_USUAL: dict[str, tuple[tuple[str, object], ...]] = {
    "AttemptPlanned": (("engine", "local"), ("request", {}))
}  # defaults
SAYS_CPU_LEAST = r"\"cpu\":\"least\""  # in the text of an event: its record says `"cpu":"least"`
_FIELDS = {name: frozenset(one.__struct_fields__) for name, one in EVENT_CLASSES.items()}


def event_columns(seq: int, event: Event) -> tuple[Any, ...]:
    """seq, at, run, job, attempt, kind, data, said. Raise ValueError for what JSON can't hold."""
    document, kind = encode(event), type(event).__name__
    columns = [document.pop(name, None) for name in _COLUMNS]
    for name, value in _USUAL.get(kind, ()):
        if document.get(name) == value:
            del document[name]
    verdict = document.get("verdict")
    if verdict is not None:
        for name in _SAID_ONCE:
            if verdict[name] == document.get(name):
                del verdict[name]
    said = document.get("said")
    if said is not None and said.isascii() and "\0" not in said:
        del document["said"]
    else:
        said = None
    return (seq, *columns, kind, dumps(document), said)


def decode_event(
    at: float, run: int, job: int | None, attempt: int | None, kind: str, data: str, said: str | None = None
) -> Event:
    """Return the event; raise ValueError with a sentence when it does not fit."""
    declared = EVENT_CLASSES.get(kind)
    if declared is None:
        raise ValueError(f"this version of Aver knows no event {kind}")
    document = loads(dict[str, Any], data)
    if said is not None:
        document["said"] = said
    if kind == "TaskEnded" and "cause" not in document:
        document["cause"] = json.loads(task_cause_text(document.get("said")) or "{}")  # before schema 5
    if SAYS_CPU_LEAST in data and isinstance(usage := document.get("usage"), dict):
        usage["is_cpu_least"] = True  # before schema 10 it was in the record alone
    if '"facts"' in data:
        _renew_jobs(document)
    if isinstance(verdict := document.get("verdict"), dict):
        for name in _SAID_ONCE:
            if name in document:
                verdict.setdefault(name, document[name])
    for name, value in zip(_COLUMNS, (at, run, job, attempt), strict=True):
        if name in _FIELDS[kind]:
            document[name] = value
    return decode(declared, document)


def _renew_jobs(document: dict[str, Any]) -> None:
    """Bring the jobs of a flow into their present form; what is not a flow is left for `decode` to refuse."""
    holder = document.get("submission", document)
    flow = holder.get("flow") if isinstance(holder, dict) else None
    jobs = flow.get("jobs") if isinstance(flow, dict) else None
    if isinstance(flow, dict) and isinstance(jobs, list):
        flow["jobs"] = [JobSpec.read_older(job) if isinstance(job, dict) else job for job in jobs]


def task_cause_text(said: object) -> str | None:
    """The cause of a task's end as the column `cause` keeps it, by its witness's words; None: there is nothing."""
    try:
        words = json.loads(said) if isinstance(said, str) else None
        return cause_text(task_cause(parse_record(words))) if isinstance(words, dict) else None
    except ValueError:
        return None


def cause_text(cause: TaskCause) -> str | None:
    return None if cause == TaskCause() else dumps(cause)


def column_text(text: str) -> str:
    """Text for a column. SQLite's TEXT holds neither lone surrogates nor, through JSON, NUL: they are spelled out."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


_measured = attrgetter(*MEASURED)
NO_VERDICT: dict[str, Any] = dict.fromkeys(VERDICT)
NOT_MEASURED: dict[str, Any] = dict.fromkeys(MEASURED)


def verdict_columns(state: State, verdict: Verdict | None) -> dict[str, Any]:
    if verdict is None or state in UNSETTLED:
        return NO_VERDICT
    return {
        "exit": None if verdict.exit is None else verdict.exit.wait_status,
        "verified": 1 if verdict.verified else 0,
        "source": column_text(verdict.source),
        "warnings": verdict.warnings or None,
        "detail": column_text(verdict.detail) or None,
    }


def measured_columns(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return NOT_MEASURED
    values = dict(zip(MEASURED, _measured(usage), strict=True))
    values["is_cpu_least"] = 1 if usage.is_cpu_least else None  # as rows have it that were written without the column
    if usage.node is not None:
        values["node"] = column_text(usage.node)
    return values
