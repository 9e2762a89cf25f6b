"""Times as Slurm's reading commands take them: `now-2days`, `2026-11-15T10:00`, `1115`, `noon`, `uts1`.

A time of day without a date is today's; a date without a year is the last one that there was.
"""

from __future__ import annotations

import time

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_NAMED = {
    "today": (0, 0), "midnight": (0, 0), "elevenses": (11, 0), "noon": (12, 0), "fika": (15, 0), "teatime": (16, 0),
}  # fmt: skip
LATEST = 253_370_764_800  # the year 9999


def parse_past(text: str, now: float) -> float:
    """Unix time; raise ValueError with Slurm's sentence for what is no time."""
    word = text.strip().lower()
    try:
        found = _parse(word, now)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None or not 0 <= found < LATEST:
        raise ValueError(f"Invalid time specification (pos=0): {text}")
    return found


def midnight(now: float) -> float:
    local = time.localtime(now)
    return time.mktime((local[0], local[1], local[2], 0, 0, 0, 0, 0, -1))


def _parse(word: str, now: float) -> float | None:
    if word.startswith("now"):
        return _relative(word[3:].strip(), now)
    if word.startswith("uts") and word[3:].isascii() and word[3:].isdigit():
        return float(word[3:])
    local = time.localtime(now)
    today = (local[0], local[1], local[2])
    if word in _NAMED:
        return _at(today, (*_NAMED[word], 0))
    if word == "tomorrow":
        return midnight(midnight(now) + 86400 + 7200)
    date, clock = word, ""
    if len(word) >= 10 and word[4:5] == "-":
        date, clock = word[:10], word[10:]
        if clock:
            if clock[0] not in "t ":
                return None
            clock = clock[1:]
    elif ":" in word and "-" not in word:
        date, clock = "", word
    elif "-" in word:
        date, _, clock = word.partition("-")
        if not clock:
            return None
    day = _date(date, today) if date else today
    hour = _clock(clock) if clock or not date else (0, 0, 0)
    return None if day is None or hour is None else _at(day, hour)


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


def _date(text: str, today: tuple[int, int, int]) -> tuple[int, int, int] | None:
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
        return _checked(today[0] - ((month, day) > today[1:]), month, day)
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
