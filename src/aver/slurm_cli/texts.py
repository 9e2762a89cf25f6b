"""Times, sizes and lists as Slurm's commands print them. Pure text; unknown has the word that the caller gives."""

from __future__ import annotations

import os
import time

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

NULL = "(null)"
MIB = 1 << 20
LAST_MOMENT = 253_402_300_799.0  # the end of the year 9999
_UNITS = "KMGTPE"


def clock(seconds: float | None) -> str:
    """`0:06`, `1:00:00`, `1-02:03:04`, `UNLIMITED`: as squeue and sinfo print a time."""
    if seconds is None:
        return "UNLIMITED"
    whole = max(0, int(seconds))
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{rest:02d}"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def full_clock(seconds: float | None) -> str:
    """`00:00:06`, `1-02:03:04`, `UNLIMITED`: as scontrol and sacct print a time."""
    if seconds is None:
        return "UNLIMITED"
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def cpu_clock(seconds: float | None) -> str:
    """`00:00.019`, `01:02:03`: as sacct prints processor time, with thousandths below an hour."""
    if seconds is None:
        return "00:00:00"
    thousandths = max(0, int(seconds * 1000 + 1e-6))
    whole, rest = divmod(thousandths, 1000)
    if whole >= 3600 or not rest:
        return full_clock(whole)
    return f"{whole // 60:02d}:{whole % 60:02d}.{rest:03d}"


def moment(at: float | None, unknown: str = "Unknown") -> str:
    """`2026-11-15T23:27:25` in local time, or as SLURM_TIME_FORMAT asks."""
    if at is None or not -LAST_MOMENT < at < LAST_MOMENT:
        return unknown
    try:
        local = time.localtime(int(at))
    except (OverflowError, OSError, ValueError):
        return unknown
    form = os.environ.get("SLURM_TIME_FORMAT", "")
    if form and form != "standard":
        return _relative(int(at), local) if form == "relative" else _custom(form, local)
    return f"{local[0]:04d}-{local[1]:02d}-{local[2]:02d}T{local[3]:02d}:{local[4]:02d}:{local[5]:02d}"


def _custom(form: str, local: time.struct_time) -> str:
    try:
        return time.strftime(form, local)[:255]
    except ValueError:
        return time.strftime("%Y-%m-%dT%H:%M:%S", local)


def _relative(at: int, local: time.struct_time) -> str:
    """`20:15` today, `Tomorr 20:15`, `Ystday 20:15`, `Fri 20:15` within a week, `15 Nov 20:15`, else the date."""
    now = time.localtime()
    days = (time.mktime((*local[:3], 12, 0, 0, 0, 0, -1)) - time.mktime((*now[:3], 12, 0, 0, 0, 0, -1))) // 86400
    if days == 0:
        return time.strftime("%H:%M:%S", local)
    if days in (-1, 1):
        return time.strftime(f"{'Ystday' if days < 0 else 'Tomorr'} %H:%M", local)
    if 0 < days < 7:
        return time.strftime("%a %H:%M", local)
    if local[0] == now[0]:
        return time.strftime("%-d %b %H:%M", local)
    return time.strftime("%-d %b %Y", local)


def size(value: float, unit: str = "", wanted: str | None = None, *, exact: bool = True) -> str:
    """Slurm's sizes: `1100K`, `1.50G`, `1.07M` where a unit is wanted; `unit` is that of `value`, "" for bytes.

    Without a wanted unit, the largest in which halves are exact. Not `exact`: the number as it is.
    """
    place = _UNITS.find(unit) + 1 if unit else 0
    if not value:
        return "0"
    if wanted:
        value = float(value) / 1024.0 ** (_UNITS.find(wanted) + 1 - place)
        place = _UNITS.find(wanted) + 1
    elif exact:
        while value >= 1024 and value == int(value) and int(value) % 512 == 0 and place < len(_UNITS):
            value = value / 1024
            place += 1
    letter = "" if place == 0 else _UNITS[place - 1]
    return f"{int(value)}{letter}" if value == int(value) else f"{value:.2f}{letter}"


def mib(size_bytes: int | None) -> int:
    """Whole MiB, as Slurm counts memory; 0 is no limit."""
    return 0 if size_bytes is None else -(-size_bytes // MIB)


def index_list(indices: Iterable[int]) -> str:
    """`1-3,5`; more than ten apart with one step between all: `1-21:2`. As Slurm names the tasks of an array."""
    ordered = sorted(set(indices))
    if len(ordered) > 1 and ordered[-1] - ordered[0] > 10:
        step = ordered[1] - ordered[0]
        if step > 1 and ordered == list(range(ordered[0], ordered[-1] + 1, step)):
            return f"{ordered[0]}-{ordered[-1]}:{step}"
    parts: list[str] = []
    at = 0
    while at < len(ordered):
        end = at
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        parts.append(str(ordered[at]) if end == at else f"{ordered[at]}-{ordered[end]}")
        at = end + 1
    return ",".join(parts)


def shortened(text: str) -> str:
    """At most SLURM_BITSTR_LEN characters (64), with `...` where more were there; 0 is no limit."""
    asked = os.environ.get("SLURM_BITSTR_LEN", "")
    length = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 64
    return text if not length or len(text) <= length else text[: max(0, length - 3)] + "..."


def suspended_s(said: Iterable[tuple[float, dict[str, Any]]], begin: float, end: float) -> float:
    """For how many seconds between these two an attempt was suspended, by what was said of it."""
    total, since = 0.0, None
    for at, words in said:
        if words.get("state") == "SUSPENDED":
            since = at if since is None else since
        elif since is not None:
            total, since = total + max(0.0, min(at, end) - max(since, begin)), None
    return total if since is None else total + max(0.0, end - max(since, begin))
