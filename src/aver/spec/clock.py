"""Moments as people write them: `now+1hour`, `16:00`, `tomorrow`, `2030-01-20T12:34`, `1115`, `noon`.

One reader for what lies ahead (begin, deadline) and for what is past (the times of Slurm's reading commands). Ahead, a
time of day is the next one and a date without a year the next one; in the past, it is today's and the last one that
there was. The clock is an argument, times are local. Imports little: Slurm's commands are called in loops.
"""

from __future__ import annotations

import time

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_NAMED = {
    "today": (0, 0), "midnight": (0, 0), "elevenses": (11, 0), "noon": (12, 0), "fika": (15, 0), "teatime": (16, 0),
}  # fmt: skip
LATEST = 253_370_764_800  # the year 9999
_EXAMPLES = "now+1hour, 16:00, tomorrow, 2030-01-20 or 2030-01-20T12:34:00"


def parse_past(text: str, now: float) -> float:
    """Unix time; raise ValueError with Slurm's sentence for what is no time."""
    word = text.strip().lower()
    try:
        found = _parse(word, now, is_ahead=False)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None or not 0 <= found < LATEST:
        raise ValueError(f"Invalid time specification (pos=0): {text}")
    return found


def parse_moment(text: str, now: float) -> float:
    """Unix time of a begin or a deadline; raise ValueError with one sentence that has examples."""
    word = text.strip().lower()
    try:
        found = _parse(word, now, is_ahead=True)
        if found is None and word.startswith("now+"):
            from aver.model.units import parse_time

            found = now + (parse_time(word[4:]) or 0)
        elif found is None and word[4:5] == "-":  # with a fraction or a time zone
            from datetime import datetime

            found = datetime.fromisoformat(word.upper()).timestamp()
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None:
        raise ValueError(f"{text!r} is not a time of day or a date: give {_EXAMPLES}")
    return found


def midnight(now: float) -> float:
    local = time.localtime(now)
    return time.mktime((local[0], local[1], local[2], 0, 0, 0, 0, 0, -1))


def _parse(word: str, now: float, is_ahead: bool) -> float | None:
    if word.startswith("now"):
        rest = word[3:].strip()
        return None if is_ahead and rest.startswith("-") else _relative(rest, now)
    if not is_ahead and word.startswith("uts") and word[3:].isascii() and word[3:].isdigit():
        return float(word[3:])
    local = time.localtime(now)
    today = (local[0], local[1], local[2])
    if is_ahead and word == "today":
        return now
    if word in _NAMED:
        return _of_day(today, (*_NAMED[word], 0), now, is_ahead)
    if word == "tomorrow":
        return midnight(midnight(now) + 86400 + 7200)
    name, _, day_word = word.partition("-")
    if name in _NAMED and day_word in ("today", "tomorrow"):
        return _at((today[0], today[1], today[2] + (day_word == "tomorrow")), (*_NAMED[name], 0))
    date, clock = word, ""
    if len(word) >= 10 and word[4:5] == "-":
        date, clock = word[:10], word[10:]
        if clock:
            if clock[0] not in "t " or len(clock) == 1:
                return None
            clock = clock[1:]
    elif ":" in word and "-" not in word:
        date, clock = "", word
    elif "-" in word:
        date, _, clock = word.partition("-")
        if not clock:
            return None
    hour = _clock(clock) if clock or not date else (0, 0, 0)
    if hour is None or not date:
        return None if hour is None else _of_day(today, hour, now, is_ahead)
    day = _date(date, today, is_ahead)
    return None if day is None else _at(day, hour)


def _of_day(today: tuple[int, int, int], clock: tuple[int, int, int], now: float, is_ahead: bool) -> float:
    moment = _at(today, clock)
    return _at((today[0], today[1], today[2] + 1), clock) if is_ahead and moment <= now else moment


def _relative(rest: str, now: float) -> float | None:
    if not rest:
        return now
    sign = {"+": 1, "-": -1}.get(rest[0])
    rest = rest[1:].strip()
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    unit = rest[len(digits) :].strip()
    if sign is None or not digits or len(digits) > 9:
        return None
    size = (
        1 if not unit else next((one for name, one in _UNITS.items() if name.startswith(unit.rstrip("s") or "s")), None)
    )
    return None if size is None else max(0.0, now + sign * int(digits) * size)


def _date(text: str, today: tuple[int, int, int], is_ahead: bool) -> tuple[int, int, int] | None:
    """`YYYY-MM-DD`, `MM/DD[/YY]`, `MM.DD[.YY]`, `MMDD[YY]`."""
    for mark in "-/.":
        if mark in text:
            parts = text.split(mark)
            break
    else:
        parts = [text[at : at + 2] for at in range(0, len(text), 2)] if len(text) in (4, 6) else []
    if not parts or not all(part.isascii() and part.isdigit() and len(part) <= 4 for part in parts):
        return None
    numbers = [int(part) for part in parts]
    if len(parts[0]) == 4 and len(parts) == 3:
        return _checked(numbers[0], numbers[1], numbers[2])
    if len(parts) == 3:
        return _checked(numbers[2] + (2000 if numbers[2] < 100 else 0), numbers[0], numbers[1])
    if len(parts) == 2:
        month, day = numbers
        year = today[0] + ((month, day) < today[1:]) if is_ahead else today[0] - ((month, day) > today[1:])
        return _checked(year, month, day)
    return None


def _checked(year: int, month: int, day: int) -> tuple[int, int, int] | None:
    if not (1970 <= year <= 9998 and 1 <= month <= 12 and day >= 1):
        return None
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    most = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    return (year, month, day) if day <= most else None


def _clock(text: str) -> tuple[int, int, int] | None:
    """`HH:MM[:SS]` with AM or PM behind it."""
    half = text[-2:] if text[-2:] in ("am", "pm") else ""
    parts = text[: len(text) - len(half)].strip().split(":")
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() and len(part) <= 2 for part in parts):
        return None
    hour, minute, second = (*(int(part) for part in parts), 0)[:3]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return (hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def _at(day: tuple[int, int, int], clock: tuple[int, int, int]) -> float:
    return time.mktime((*day, *clock, 0, 0, -1))
