"""What a witness wrote, read strictly.

A line is `LLLLLLLL CCCCCCCC JSON` (docs/design/witness.md). Whatever does not fit raises
ValueError with a sentence: a wrong type, a wait status that no ended process has, a missing
field, NaN, a number out of range. Nothing is filled in and nothing is guessed. Fields that
we don't know are ignored, so that a newer witness can say more.

Ten thousand records pass here in one run: plain checks, no reflection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn
from zlib import crc32

from aver.model.evidence import (
    Act,
    ActKind,
    FilesSeen,
    LaunchFailure,
    LimitPassed,
    LookBegan,
    MemoryWatch,
    Resumed,
    Suspended,
    WitnessRecord,
    WitnessStart,
)
from aver.model.exit import ExitStatus
from aver.model.signals import HIGHEST

LONGEST_LINE_BYTES = 1 << 20
MOST_ACTS = 128
MOST_GOT = 128
MOST_NAMES = 128

Moment = LimitPassed | Suspended | Resumed | LookBegan
MOMENTS: dict[str, type[Moment]] = {
    "limit": LimitPassed, "suspended": Suspended, "resumed": Resumed, "look": LookBegan,
}  # fmt: skip

_HEADER_BYTES = 18
_HEX = frozenset(b"0123456789abcdef")
_LATEST = 1e11  # seconds since 1970; also the longest duration that is believed
_LARGEST = 1 << 62
_LARGEST_PID = 1 << 30
_OPERATIONS = frozenset(
    {"exec", "chdir", "stdin", "stdout", "stderr", "env", "cgroup", "fork", "limit", "journal", "input"}
)
_ACTS = {kind.value: kind for kind in ActKind}
_WATCHES = {watch.value: watch for watch in MemoryWatch}


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def unframe(line: bytes) -> dict[str, object]:
    """The JSON object of one framed line, with or without its newline; raise ValueError if it is not a line."""
    end = len(line) - 1 if line.endswith(b"\n") else len(line)
    body = line[_HEADER_BYTES:end]
    if end > LONGEST_LINE_BYTES:
        raise ValueError(f"a witness's line of {end} bytes is too long")
    if end < _HEADER_BYTES or line[8] != 0x20 or line[17] != 0x20:
        raise ValueError("a witness's line without length and checksum")
    if not (_HEX.issuperset(line[:8]) and _HEX.issuperset(line[9:17])):
        raise ValueError("a witness's line whose length or checksum is not 8 hex digits")
    if int(line[:8], 16) != len(body):
        raise ValueError(f"a witness's line says {int(line[:8], 16)} bytes and has {len(body)}")
    if int(line[9:17], 16) != crc32(body):
        raise ValueError("a witness's line whose checksum does not fit")
    return decode(body)


def decode(body: bytes) -> dict[str, object]:
    """The JSON object in these bytes; raise ValueError if they are anything else."""
    try:
        decoded = _decode(body.decode("utf-8"))
    except RecursionError:
        raise ValueError("a witness's line is nested too deeply") from None
    if type(decoded) is not dict:
        raise ValueError("a witness's line is not a JSON object")
    return decoded


def parse_line(line: bytes) -> WitnessStart | WitnessRecord:
    """Read one framed start or end line."""
    said = unframe(line)
    match said.get("ev"):
        case "start":
            return parse_start(said)
        case "end":
            return parse_record(said)
        case other:
            raise ValueError(f"a witness's line {other!r} is neither start nor end")


def parse_start(said: Mapping[str, object]) -> WitnessStart:
    if said.get("ev") != "start":
        raise ValueError('a witness\'s start line without "ev": "start"')
    return WitnessStart(
        key=_text(said, "key", 256),
        pid=_count(said, "pid", 1, _LARGEST_PID),
        witness_pid=_count(said, "witness", 1, _LARGEST_PID),
        at=_seconds(said, "at"),
        watch=_watch(said),
        due_s=parse_due(said),
    )


def parse_due(said: Mapping[str, object]) -> float | None:
    """When the time limit passes, by the monotonic clock; None where it is not said."""
    return None if said.get("due") is None else _seconds(said, "due")


def parse_moment(said: Mapping[str, object]) -> Moment:
    """What a witness says of a job that has not ended, with its time."""
    return MOMENTS[_text(said, "ev", 16)](at_s=_seconds(said, "at"))


def parse_record(said: Mapping[str, object]) -> WitnessRecord:
    if said.get("ev") != "end":
        raise ValueError('a witness\'s end line without "ev": "end"')
    launch = _launch(said)
    raw = said.get("raw", said)
    if launch is None:
        if type(raw) is not int:
            raise ValueError("a witness's record without a wait status and without a launch failure")
        exit_status = ExitStatus.from_wait(raw)
    else:
        if raw is not None:
            raise ValueError("a witness's record with a launch failure and a wait status")
        exit_status = None
    _count(said, "witness", 1, _LARGEST_PID)
    if "size" in said:  # of the journal; not kept with the evidence
        _count(said, "size", 0, _LARGEST)
    return WitnessRecord(
        key=_text(said, "key", 256),
        pid=_count(said, "pid", 0 if launch else 1, _LARGEST_PID),
        exit=exit_status,
        started_at=_seconds(said, "start"),
        elapsed_s=_seconds(said, "elapsed"),
        suspended_s=_seconds(said, "suspended"),
        user_s=_seconds(said, "user"),
        sys_s=_seconds(said, "sys"),
        peak_bytes=_count_or_none(said, "peak"),
        maxrss_bytes=_count_or_none(said, "maxrss"),
        watch=_watch(said),
        limit_bytes=_count_or_none(said, "limit"),
        oom_kills=_count(said, "oom", 0, _LARGEST),
        time_limit_s=_seconds(said, "time") if "time" in said else None,
        over_s=_seconds(said, "over") if "over" in said else None,
        beyond_oom_kills=_count(said, "beyond", 0, _LARGEST) if "beyond" in said else 0,
        inner_oom_kills=_count(said, "inner", 0, _LARGEST) if "inner" in said else 0,
        oomd_kills=_count(said, "oomd", 0, _LARGEST) if "oomd" in said else 0,
        around_oom_kills=_count(said, "around", 0, _LARGEST) if "around" in said else 0,
        host_oom_kills=_count(said, "hostoom", 0, _LARGEST),
        acts=_acts(said),
        got=_got(said),
        left_over=_count(said, "left", 0, _LARGEST),
        stays=_count(said, "stays", 0, _LARGEST) if "stays" in said else 0,
        refused_forks=_count(said, "forks", 0, _LARGEST) if "forks" in said else 0,
        is_cpu_least=said.get("cpu") == "least",
        launch=launch,
        boot=_text(said, "boot", 256),
        step_tasks=_count(said, "tasks", 1, _LARGEST) if "tasks" in said else None,
        name=_readable(_text(said, "name", LONGEST_LINE_BYTES)) if "name" in said else "",
        files=_files(said["files"]) if "files" in said else None,
    )


def _files(value: object) -> FilesSeen:
    if type(value) is not dict:
        raise ValueError('a witness\'s "files" is not an object')
    counts = {name: _count(value, name, 0, _LARGEST) for name in ("outputs", "wrong", "written", "removed")}
    lists = {name: _names(value, name) for name in ("missing", "old", "unseen", "names")}
    return FilesSeen(at=_seconds(value, "at"), **counts, **lists)  # type: ignore[arg-type]


def _names(said: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = said.get(name)
    if type(value) is not list or len(value) > MOST_NAMES or not all(type(one) is str for one in value):
        raise ValueError(f"a witness's {name!r} is not a list of at most {MOST_NAMES} names")
    return tuple([_readable(one) for one in value])


def _count(said: Mapping[str, object], name: str, least: int, most: int) -> int:
    value = said.get(name)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"a witness's {name!r} is not a whole number from {least} to {most}")
    return value


def _count_or_none(said: Mapping[str, object], name: str) -> int | None:
    if said.get(name, said) is None:
        return None
    return _count(said, name, 0, _LARGEST)


def _seconds(said: Mapping[str, object], name: str) -> float:
    value = said.get(name)
    if (type(value) is float or type(value) is int) and 0 <= value <= _LATEST:  # false for NaN
        return float(value)
    raise ValueError(f"a witness's {name!r} is not a time in seconds")


def _text(said: Mapping[str, object], name: str, longest: int) -> str:
    value = said.get(name)
    if type(value) is not str or not 0 < len(value) <= longest:
        raise ValueError(f"a witness's {name!r} is not a text of 1 to {longest} characters")
    return value


def _watch(said: Mapping[str, object]) -> MemoryWatch:
    value = said.get("mem")
    watch = _WATCHES.get(value) if type(value) is str else None
    if watch is None:
        raise ValueError('a witness\'s "mem" is none of cgroup1, cgroup2, sampled, none')
    return watch


def _acts(said: Mapping[str, object]) -> tuple[Act, ...]:
    value = said.get("acts")
    if type(value) is not list or len(value) > MOST_ACTS:
        raise ValueError(f'a witness\'s "acts" is not a list of at most {MOST_ACTS}')
    return tuple([_act(act) for act in value]) if value else ()


def _act(value: object) -> Act:
    if type(value) is not dict:
        raise ValueError("a witness's act is not an object")
    word = value.get("act")
    kind = _ACTS.get(word) if type(word) is str else None
    if kind is None:
        raise ValueError(f"a witness's act is none of {', '.join(_ACTS)}")
    if "times" not in value:
        reached = _count(value, "to", 0, _LARGEST) if "to" in value else None
        blocked, unseen = (_count(value, name, 0, _LARGEST) if name in value else 0 for name in ("blocked", "unseen"))
        number = _count(value, "sig", 0, HIGHEST)
        return Act(kind, _seconds(value, "at"), number, reached=reached, blocked=blocked, unseen=unseen)
    times, last_s = _count(value, "times", 2, _LARGEST), _seconds(value, "last")
    return Act(kind, _seconds(value, "at"), _count(value, "sig", 0, HIGHEST), times, last_s)


def _got(said: Mapping[str, object]) -> tuple[int, ...]:
    value = said.get("got")
    if type(value) is not list or len(value) > MOST_GOT:
        raise ValueError(f'a witness\'s "got" is not a list of at most {MOST_GOT}')
    for number in value:
        if type(number) is not int or not 1 <= number <= HIGHEST:
            raise ValueError('a witness\'s "got" has something that is not a signal')
    return tuple(value)


def _launch(said: Mapping[str, object]) -> LaunchFailure | None:
    value = said.get("launch", said)
    if value is None:
        return None
    if type(value) is not dict:
        raise ValueError('a witness\'s "launch" is neither null nor an object')
    operation = value.get("op")
    if type(operation) is not str or operation not in _OPERATIONS:
        raise ValueError("a witness's launch failure names no operation that we know")
    path = value.get("path")
    if type(path) is not str or len(path) > LONGEST_LINE_BYTES:
        raise ValueError("a witness's launch failure has no path")
    return LaunchFailure(operation, _count(value, "errno", 1, 4095), _readable(path))


def _readable(path: str) -> str:
    """The path as UTF-8 text. The witness writes one character a byte; bytes that are no UTF-8 are shown as \\xNN."""
    if path.isascii():
        return path
    try:
        return path.encode("latin-1").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        raise ValueError("a witness's path has a character that is not one byte") from None
