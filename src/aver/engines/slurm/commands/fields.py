"""Single fields of Slurm's commands: moments, spans of time, sizes, counts, exit statuses.

Each is read whole or not at all: what can't be read is None or empty, never a number that was not there.
Moments are in UTC, since the commands run with TZ=UTC0.
"""

from __future__ import annotations

import calendar
import re
from datetime import datetime
from fractions import Fraction

SEPARATOR = "\x1f"  # between fields; nothing that Slurm prints has it, but perhaps a name, which comes last

_MOMENT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})", re.ASCII)
_SPAN = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{2})(\.[0-9]{1,6})?", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,20})(\.[0-9]{1,9})?([KMGTPE]?)", re.ASCII)
_EXIT = re.compile(r"([0-9]{1,3}):([0-9]{1,3})", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


def parse_moment(text: str) -> float | None:
    """`2026-11-16T01:55:09` in UTC. None for `Unknown`, `None`, `N/A` and whatever else there is."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    try:
        moment = datetime(*(int(part) for part in match.groups()))  # type: ignore[arg-type]
    except ValueError:
        return None
    return float(calendar.timegm(moment.timetuple())) if moment.year >= 1971 else None


def parse_span(text: str) -> float | None:
    """Seconds of `1-02:03:04`, `02:03:04`, `02:03`, `00:00.012`."""
    match = _SPAN.fullmatch(text)
    if match is None or (match[1] and not match[2]):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    if seconds >= 60 or (match[2] and minutes >= 60):
        return None
    return days * 86400 + hours * 3600 + minutes * 60 + seconds + float(Fraction(match[5] or 0))


def parse_bytes(text: str) -> int | None:
    """`1126400`, `1100K`, `4.50M`, `2G`."""
    match = _SIZE.fullmatch(text)
    if match is None or (match[2] and not match[3]):
        return None
    return int(Fraction(match[1] + (match[2] or "")) * 1024 ** " KMGTPE".index(match[3] or " "))


def parse_count(text: str) -> int | None:
    return int(text) if _COUNT.fullmatch(text) else None


def exit_text(text: str) -> str:
    """`code:signal` as it is, if it is one; otherwise empty."""
    match = _EXIT.fullmatch(text)
    return text if match and int(match[1]) <= 255 and int(match[2]) <= 255 else ""


def exit_from_raw(text: str) -> str:
    """`code:signal` from a raw wait status (35072 is `137:0`), or as it is; empty for what is neither.

    0:53 and 0:125 are Slurm's own codes; their raw numbers look like signals.
    """
    raw = parse_count(text)
    if raw is None:
        return exit_text(text)
    if raw > 0xFFFF:
        return ""
    return f"0:{raw & 0x7F}" if raw & 0x7F else f"{raw >> 8}:0"  # beside a signal the upper half says nothing
