"""Begin times, deadlines, warning signals and short waits, in Slurm's forms.

All raise ValueError with one sentence. The clock is an argument; times without a date are
local, today, or tomorrow if today's has passed.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

from aver.model.job import Scope, WarningSignal
from aver.model.signals import parse_signal
from aver.model.units import parse_time

DEFAULT_LEAD_S = 60  # Slurm's
LONGEST_WAIT_S = 86400

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_RELATIVE = re.compile(r"now(?:\s*\+\s*([0-9]{1,9})\s*([a-z]*))?")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?\s*(am|pm)?")
_NAMED = {"midnight": "00:00", "noon": "12:00", "fika": "15:00", "teatime": "16:00", "elevenses": "11:00"}
_WARNING = re.compile(r"(?:([BR]{1,2}):)?([A-Za-z0-9+-]+)(?:@(.+))?")
_EXAMPLES = "now+1hour, 16:00, tomorrow, 2030-01-20 or 2030-01-20T12:34:00"


def parse_moment(text: str, now: float) -> float:
    """Unix time of `now+1hour`, `16:00`, `tomorrow`, `2030-01-20T12:34:00` and the like."""
    word = text.strip().lower()
    try:
        moment = _moment(word, now)
    except (ValueError, OverflowError, OSError):
        moment = None
    if moment is None or not math.isfinite(moment):
        raise ValueError(f"{text!r} is not a time of day or a date: give {_EXAMPLES}")
    return moment


def _moment(word: str, now: float) -> float | None:
    relative = _RELATIVE.fullmatch(word)
    if relative:
        unit = relative[2] or ""
        if unit not in _UNITS and unit.rstrip("s") not in ("second", "minute", "hour", "day", "week"):
            return None
        return now + int(relative[1] or 0) * _UNITS[unit[:1]]
    if word.startswith("now+"):
        return now + (parse_time(word[4:]) or 0)
    here = datetime.fromtimestamp(now)
    today = here.replace(hour=0, minute=0, second=0, microsecond=0)
    if word == "today":
        return now
    if word == "tomorrow":
        return (today + timedelta(days=1)).timestamp()
    clock = _CLOCK.fullmatch(_NAMED.get(word, word))
    if clock:
        hour = int(clock[1])
        if clock[4]:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if clock[4] == "pm" else 0)
        moment = today.replace(hour=hour, minute=int(clock[2]), second=int(clock[3] or 0))
        return (moment if moment > here else moment + timedelta(days=1)).timestamp()
    if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", word):
        return datetime.fromisoformat(word.upper()).timestamp()
    return None


def parse_warning(text: str, scope: Scope) -> WarningSignal:
    """Read `[B:]SIG[@lead]`; a bare lead is seconds. `scope` is meant when there is no `B:`."""
    match = _WARNING.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a warning signal: give TERM@5m, USR1@60 (seconds) or B:TERM@60")
    lead = DEFAULT_LEAD_S if match[3] is None else _seconds(match[3], "a lead")
    return WarningSignal(parse_signal(match[2]), int(lead), Scope.SCRIPT if "B" in (match[1] or "") else scope)


def parse_kill_wait(text: str) -> float:
    """Seconds between TERM and KILL; a bare number is seconds, as Slurm's KillWait."""
    seconds = _seconds(text, "a kill wait")
    if seconds > LONGEST_WAIT_S:
        raise ValueError(f"{text!r} is more than a day: give 30 (seconds), 90s or 2m")
    return seconds


def _seconds(text: str, what: str) -> float:
    word = text.strip()
    if re.fullmatch(r"[0-9]{1,8}(\.[0-9]{1,6})?", word):
        return float(word)
    try:
        return float(parse_time(word) or 0) if re.fullmatch(r"[0-9].*[smhd]", word.lower()) else _refuse(text, what)
    except ValueError:
        return _refuse(text, what)


def _refuse(text: str, what: str) -> float:
    raise ValueError(f"{text!r} is not {what}: give 30 (seconds), 90s or 2m")
