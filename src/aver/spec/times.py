"""Warning signals and short waits, in Slurm's forms. All raise ValueError with one sentence."""

from __future__ import annotations

import re

from aver.model.job import Scope, WarningSignal
from aver.model.signals import parse_signal
from aver.model.units import parse_time

DEFAULT_LEAD_S = 60  # Slurm's
LONGEST_WAIT_S = 86400

_WARNING = re.compile(r"(?:([BR]{1,2}):)?([A-Za-z0-9+-]+)(?:@(.+))?")


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
