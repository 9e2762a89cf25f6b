"""Reading what came over the socket: strict for requests, which are untrusted, lenient for replies.

Whatever is wrong with a request is a UsageError of one line: a wrong type, a field that is missing or not known, a
number out of range, a text that is none, JSON that is nested too deeply.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, TypeVar

from aver.errors import InternalError, UsageError
from aver.model.codec import decode, read_json
from aver.model.job import StepSpec
from aver.model.record import Record
from aver.model.units import LARGEST_BYTES, LATEST_TIME, LONGEST_S
from aver.protocol.messages import (
    REQUESTS,
    Accept,
    Allocate,
    Cancel,
    Changes,
    Hold,
    Prune,
    Reinit,
    Release,
    Request,
    Requeue,
    Resume,
    Retry,
    SignalStep,
    Step,
    Suspend,
    Update,
    Watch,
)

MOST_IDS = 100_000
MOST_TASKS = 100_000
LAST_SIGNAL = 64
LONGEST_NUMBER = 20  # characters
LONGEST_ERROR = 300
LONGEST_TOKEN = 200
TEXTS = ("text", "script")  # fields that are written to a file as they are: they may hold NUL
_BEGIN = re.compile(rb'\{ ?"op": ?"([a-z_]+)"(?:, ?(?=")|(?=\}))')
_NOT_PLAIN = re.compile(rb"[0-9]{19}|\\u(?:[dD][89a-fA-F]|0000)")  # numbers out of range, lone surrogates, NUL
WITH_IDS = (Accept, Cancel, Hold, Release, Requeue, Resume, Suspend, Update, Watch)
WITH_PERSON = (
    Accept, Allocate, Cancel, Hold, Prune, Reinit, Release, Requeue, Resume, Retry, SignalStep, Suspend, Update,
)  # fmt: skip

Reply = TypeVar("Reply", bound=Record)


def decode_request(line: bytes) -> Request:
    """Return the request; raise UsageError, in one line, for anything that is not one."""
    request = _decode_plain(line)
    if request is None:
        request = _decode_any(line)
    _check(request)
    return request


def _decode_plain(line: bytes) -> Request | None:
    """A request as our clients write it, read in one go; None: it is another one, or there is something wrong with it.

    A submission of 100,000 jobs is read in a fraction of the time and memory of `_decode_any`.
    """
    begin = _BEGIN.match(line)
    kind = None if begin is None else REQUESTS.get(begin[1].decode())
    if begin is None or kind is None or _NOT_PLAIN.search(line):
        return None
    try:
        request: Request = read_json(kind, b"{" + line[begin.end() :])
    except (ValueError, RecursionError):
        return None
    return request


def _decode_any(line: bytes) -> Request:
    try:
        document = _decoder.decode(line.decode())
        if type(document) is not dict:
            raise ValueError("it is not an object")
        op = document.pop("op", None)
        kind = REQUESTS.get(op) if type(op) is str else None
        if kind is None:
            raise UsageError(f"the coordinator does not know the request {_short(repr(op))}")
        if b"\\u" in line:
            _check_text(document)
        request: Request = decode(kind, document)
    except RecursionError:
        raise UsageError("the request can't be read: it is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"the request can't be read: {_short(str(error))}") from None
    return request


def decode_reply(kind: type[Reply], document: dict[str, Any]) -> Reply:
    """A reply of this type; fields that we do not know are passed over: the coordinator may be newer than we are."""
    try:
        return decode(kind, {name: value for name, value in document.items() if name in kind.__struct_fields__})
    except (ValueError, RecursionError) as error:
        raise InternalError(f"the coordinator's answer can't be read: {_short(str(error))}") from None


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError("a whole number is out of range")
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number


_decoder = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_finite)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 3] + "..."


def _check_text(value: Any, may_hold_nul: bool = False) -> None:
    """Bytes that are not UTF-8 are surrogates of their own, which can be turned back; others stand for no text."""
    if type(value) is str:
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError(f"the character {value[error.start]!a} stands for no text") from None
        if "\0" in value and not may_hold_nul:
            raise ValueError("a text contains a NUL byte")
    elif type(value) is list:
        for one in value:
            _check_text(one)
    elif type(value) is dict:
        for name, one in value.items():
            _check_text(name)
            _check_text(one, name in TEXTS)


def _check(request: Request) -> None:
    """Refuse what has the right types and no meaning."""
    if isinstance(request, WITH_IDS) and len(request.ids) > MOST_IDS:
        raise UsageError(f"the request names {len(request.ids)} jobs; {MOST_IDS} are possible")
    if isinstance(request, WITH_PERSON) and request.by == "":
        raise UsageError("by: the name is empty")
    match request:
        case Cancel() | SignalStep() if request.signal is not None and not 1 <= request.signal <= LAST_SIGNAL:
            raise UsageError(f"{request.signal} is not a signal number")
        case Prune():
            _check_range("older_than_s", request.older_than_s, 0, LONGEST_S)
            _check_range("keep_last", request.keep_last, 0, 1 << 62)
            _check_range("max_bytes", request.max_bytes, 1, LARGEST_BYTES)
        case Update():
            _check_changes(request)
        case Step():
            if not request.token or len(request.token) > LONGEST_TOKEN:
                raise UsageError("the request names no job")
            _check_step(request.spec)
        case _:
            pass


def _check_range(name: str, value: float | None, least: float, most: float) -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{name}: {value} is out of range")


def _check_changes(request: Update) -> None:
    changes = request.changes
    if changes == Changes() and not request.clear:
        raise UsageError("the request changes nothing")
    _check_range("time_s", changes.time_s, 1, LONGEST_S)
    _check_range("priority", changes.priority, 0, (1 << 32) - 1)
    _check_range("begin_at", changes.begin_at, 0, LATEST_TIME)
    _check_range("throttle", changes.throttle, 0, (1 << 62) - 1)
    _check_range("mem_bytes", changes.mem_bytes, 0, LARGEST_BYTES)
    _check_range("cpus", changes.cpus, 0, (1 << 31) - 1)


def _check_step(spec: StepSpec) -> None:
    if not 1 <= spec.tasks <= MOST_TASKS or not 1 <= spec.cpus_per_task <= MOST_TASKS:
        raise UsageError(f"Invalid number of tasks: {spec.tasks}")
    if not spec.args:
        raise UsageError("No command given to execute.")
    _check_range("mem_bytes", spec.mem_bytes, 0, LARGEST_BYTES)
    _check_range("time_s", spec.time_s, 0, LONGEST_S)
    _check_range("wait_s", spec.wait_s, 0, LONGEST_S)
    _check_range("umask", spec.umask, 0, 0o7777)
