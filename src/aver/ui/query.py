"""What a request asks for: words of its address, read strictly. What is wrong with one is a UsageError, one line."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import QueryParams

from aver.errors import UsageError
from aver.model.states import State


def number(params: QueryParams, name: str, usual: int, least: int = 0, most: int = 1 << 62) -> int:
    text = params.get(name, "")
    if not text:
        return usual
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= most:
        raise UsageError(f"{name}={text[:40]!r}: not a number from {least} to {most}")
    return int(text)


def word(params: QueryParams, name: str, allowed: tuple[str, ...], usual: str) -> str:
    text = params.get(name, "") or usual
    if text not in allowed:
        raise UsageError(f"{name}={text[:40]!r}: one of {', '.join(allowed)}")
    return text


def states(params: QueryParams) -> frozenset[State] | None:
    """`state=FAILED,TIMEOUT`; None: all."""
    text = params.get("state", "")
    if not text:
        return None
    try:
        return frozenset(State(one.strip().upper()) for one in text.split(","))
    except ValueError:
        raise UsageError(f"state={text[:80]!r}: the states are {', '.join(State)}") from None


def text(params: QueryParams, name: str, most: int = 500) -> str | None:
    found = params.get(name, "")
    if len(found) > most:
        raise UsageError(f"{name}: at most {most} characters")
    return found or None


def seconds(params: QueryParams, name: str) -> float | None:
    found = params.get(name, "")
    try:
        return float(found) if found else None
    except ValueError:
        raise UsageError(f"{name}={found[:40]!r}: not a time in seconds") from None


def cursor_text(cursor: tuple[Any, int] | None) -> str | None:
    return None if cursor is None else json.dumps(cursor, separators=(",", ":"))


def cursor(params: QueryParams, name: str = "after") -> tuple[Any, int] | None:
    """The `next` of the page before."""
    found = params.get(name, "")
    if not found:
        return None
    try:
        value = json.loads(found)
    except (ValueError, RecursionError):
        value = None
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str | int | float)
            and type(value[1]) is int and abs(value[1]) < 1 << 62):  # fmt: skip
        raise UsageError(f"{name}: not a cursor of this server")
    return value[0], value[1]


def group(params: QueryParams) -> tuple[int, int] | None:
    """`group=FIRST_JOB.SPEC`."""
    found = params.get("group", "")
    if not found:
        return None
    first, _, spec = found.partition(".")
    if not (first.isdigit() and spec.isdigit() and len(found) < 30):
        raise UsageError(f"group={found[:40]!r}: not a group of a run")
    return int(first), int(spec)
