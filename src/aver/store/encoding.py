"""Events as the text that the table `events` keeps, and back.

`at`, `run`, `job` and `attempt` are columns; `data` holds the other fields as plain ASCII JSON. The events of
which there are several for each job are written by hand-made code, since the generic codec costs more
than the database does; a test holds the two equal.
"""

from __future__ import annotations

import json
from functools import cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, get_args

from aver.judge.step import task_cause
from aver.judge.witness_record import parse_record
from aver.model.codec import decode, dumps, encode
from aver.model.events import AttemptPlanned, Event, JobMoved, Observed, Usage
from aver.model.evidence import TaskCause, Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Request
from aver.model.states import UNSETTLED, State

EVENT_CLASSES: dict[str, type[Event]] = {one.__name__: one for one in get_args(Event)}
_COLUMNS = ("at", "run", "job", "attempt")
_FIELDS = {name: frozenset(one.__match_args__) for name, one in EVENT_CLASSES.items()}
_STATE_TEXT = {state: quoted(state.value) for state in State}


def event_row(seq: int, event: Event) -> str:
    """One JSON array: seq, at, run, job, attempt, kind, data. Raise ValueError for what JSON can't hold."""
    match event:
        case Observed():
            return f'[{seq},{event.at!r},{event.run},{event.job},{event.attempt},"Observed",{_observed(event)}]'
        case AttemptPlanned(goes_on_from=""):
            return (
                f'[{seq},{event.at!r},{event.run},{event.job},{event.attempt},"AttemptPlanned",'
                f'{{"key":{quoted(event.key)},"engine":{quoted(event.engine)},"request":{request_text(event.request)}}}]'
            )
        case JobMoved():
            verdict = "" if event.verdict is None else f',"verdict":{_verdict(event.verdict)}'
            return (
                f'[{seq},{event.at!r},{event.run},{event.job},null,"JobMoved",'
                f'{{"state":{_STATE_TEXT[event.state]},"reason":{quoted(event.reason)}{verdict}}}]'
            )
        case _:
            document = encode(event)
            columns = [document.pop(name, None) for name in _COLUMNS]
            return dumps([seq, *columns, type(event).__name__, document])


def decode_event(at: float, run: int, job: int | None, attempt: int | None, kind: str, data: str) -> Event:
    """Return the event; raise ValueError with a sentence when it does not fit."""
    declared = EVENT_CLASSES.get(kind)
    if declared is None:
        raise ValueError(f"this version of Aver knows no event {kind}")
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("its data is no object")
    if kind == "TaskEnded" and "cause" not in document:
        document["cause"] = json.loads(task_cause_text(document.get("said")) or "{}")  # before schema 5
    for name, value in zip(_COLUMNS, (at, run, job, attempt), strict=True):
        if name in _FIELDS[kind]:
            document[name] = value
    return decode(declared, document)


def task_cause_text(said: object) -> str | None:
    """The cause of a task's end as the column `cause` keeps it, by its witness's words; None: there is nothing."""
    try:
        record = parse_record(json.loads(said)) if isinstance(said, str) else None
    except ValueError:
        return None
    return None if record is None else cause_text(task_cause(record))


def cause_text(cause: TaskCause) -> str | None:
    return None if cause == TaskCause() else dumps(encode(cause))


def request_text(request: Request) -> str:
    parts = []
    if request.cpus != 1:
        parts.append(f'"cpus":{request.cpus}')
    if request.gpus:
        parts.append(f'"gpus":{request.gpus}')
    if request.mem_bytes is not None:
        parts.append(f'"mem_bytes":{request.mem_bytes}')
    if request.time_s is not None:
        parts.append(f'"time_s":{request.time_s}')
    return "{" + ",".join(parts) + "}"


def _observed(event: Observed) -> str:
    text = (
        f'{{"source":{quoted(event.source)},"said":{quoted(event.said)},'
        f'"state":{_STATE_TEXT[event.state]},"reason":{quoted(event.reason)}'
    )
    if event.verdict is not None:
        text += f',"verdict":{_verdict(event.verdict)}'
    if event.usage is not None:
        text += f',"usage":{_usage(event.usage)}'
    if event.job_state is not None:
        text += f',"job_state":{_STATE_TEXT[event.job_state]}'
    if event.job_reason is not None:
        text += f',"job_reason":{quoted(event.job_reason)}'
    return text + "}"


def _verdict(verdict: Verdict) -> str:
    ended = "null" if verdict.exit is None else _exit(verdict.exit)
    text = (
        f'{{"state":{_STATE_TEXT[verdict.state]},"exit":{ended},"reason":{quoted(verdict.reason)},'
        f'"verified":{"true" if verdict.verified else "false"},"source":{quoted(verdict.source)}'
    )
    if verdict.warnings:
        text += f',"warnings":{dumps(verdict.warnings)}'
    if verdict.detail:
        text += f',"detail":{quoted(verdict.detail)}'
    return text + "}"


@cache
def _exit(status: ExitStatus) -> str:
    return dumps(encode(status))


def _usage(usage: Usage) -> str:
    text = f'{{"started_at":{usage.started_at!r}'
    if usage.elapsed_s is not None:
        text += f',"elapsed_s":{usage.elapsed_s!r}'
    if usage.user_s is not None:
        text += f',"user_s":{usage.user_s!r}'
    if usage.sys_s is not None:
        text += f',"sys_s":{usage.sys_s!r}'
    if usage.peak_bytes is not None:
        text += f',"peak_bytes":{usage.peak_bytes}'
    if usage.node is not None:
        text += f',"node":{quoted(usage.node)}'
    return text + "}"


def column_text(text: str) -> str:
    """Text for a column. SQLite's TEXT holds neither lone surrogates nor, through JSON, NUL: they are spelled out."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


NO_VERDICT: tuple[Any, ...] = (None, None, None, None, None)


def verdict_columns(state: State, verdict: Verdict | None) -> tuple[Any, ...]:
    if verdict is None or state in UNSETTLED:
        return NO_VERDICT
    return (
        None if verdict.exit is None else verdict.exit.wait_status,
        1 if verdict.verified else 0,
        column_text(verdict.source),
        verdict.warnings or None,
        column_text(verdict.detail) or None,
    )
