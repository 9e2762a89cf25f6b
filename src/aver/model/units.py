"""Times, sizes and counts as people write them.

Times take Slurm's forms (`10` is minutes, `1:30` minutes and seconds, `H:M:S`, `D-H`, `D-H:M`,
`D-H:M:S`, `UNLIMITED`, `INFINITE`) and suffixes (`90s`, `10m`, `2h`, `1d`, `1h30m`, `1.5h`).
A time of 0 means no limit, as `--time=0` does in Slurm. Sizes are in MiB unless a suffix
says otherwise (`512`, `2G`, `1.5GiB`); K, KB and KiB are all 1024 bytes, as in Slurm.
Anything else raises ValueError with one sentence that shows what is valid. What
`time_text` and `size_text` write, `parse_time` and `parse_size` read back unchanged.
"""

from __future__ import annotations

import re
from fractions import Fraction

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86400
LONGEST_S = 3650 * DAY_S
LATEST_TIME = 253_402_300_799.0  # the end of year 9999, since 1970

KIB = 1024
MIB = 1024**2
LARGEST_BYTES = 1024**6

_TIME_EXAMPLES = "10 (minutes), 90s, 2h, 1h30m, 01:30:00, 1-12:00:00 or UNLIMITED"
_SIZE_EXAMPLES = "512 (MiB), 800M, 2G or 1.5G"

_DAYS = re.compile(r"([0-9]{1,9})-([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")
_COLONS = re.compile(r"[0-9]{1,9}(?::[0-9]{1,9}){0,2}")
_SUFFIXES = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")
_DECIMAL_TIME = re.compile(r"([0-9]{1,9}\.[0-9]{1,9})([dhms])")
_SIZE = re.compile(r"([0-9]{1,20})(\.[0-9]{1,9})?(?:([kmgtpe])(?:i?b)?|(b))?")

_UNIT_S = {"d": DAY_S, "h": HOUR_S, "m": MINUTE_S, "s": 1}
_LETTERS = "kmgtpe"


def parse_time(text: str) -> int | None:
    """Seconds; None: unlimited."""
    word = text.strip().lower()
    if word in ("unlimited", "infinite"):
        return None
    seconds = _seconds(word)
    if seconds is None:
        raise ValueError(f"{text!r} is not a time: give {_TIME_EXAMPLES}")
    if seconds > LONGEST_S:
        raise ValueError(f"{text!r} is more than ten years: give {_TIME_EXAMPLES}")
    return seconds or None


def time_text(seconds: int | None) -> str:
    """Slurm's form: `01:30:00`, `1-12:00:00`, `UNLIMITED`."""
    if seconds is None:
        return "UNLIMITED"
    if seconds < 0:
        raise ValueError(f"{seconds} seconds is not a time")
    days, rest = divmod(seconds, DAY_S)
    clock = f"{rest // HOUR_S:02d}:{rest % HOUR_S // MINUTE_S:02d}:{rest % MINUTE_S:02d}"
    return f"{days}-{clock}" if days else clock


def parse_size(text: str) -> int:
    """Bytes, at least 1."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or (match[2] and not match[3]):
        raise ValueError(f"{text!r} is not a size: give {_SIZE_EXAMPLES}")
    factor = 1 if match[4] else 1024 ** (_LETTERS.index(match[3] or "m") + 1)
    size = int(Fraction(match[1] + (match[2] or "")) * factor)
    if size == 0:
        raise ValueError(f"{text!r} is not an amount of memory: give {_SIZE_EXAMPLES}, or leave it out for no limit")
    if size > LARGEST_BYTES:
        raise ValueError(f"{text!r} is more than 1 EiB: give {_SIZE_EXAMPLES}")
    return size


def size_text(size_bytes: int) -> str:
    """The shortest exact form: `2G`, `1536M`, `1001B`."""
    if size_bytes < 0:
        raise ValueError(f"{size_bytes} bytes is not a size")
    letters = "B" + _LETTERS.upper()
    power = 0
    while size_bytes and size_bytes % 1024 == 0 and power < len(_LETTERS):
        size_bytes //= 1024
        power += 1
    return f"{size_bytes}{letters[power]}"


def parse_count(text: str, what: str, least: int = 0, most: int = 1_000_000) -> int:
    """A whole number of `what`, such as cpus."""
    word = text.strip()
    if not (word.isascii() and word.isdigit() and len(word) <= 9 and least <= int(word) <= most):
        raise ValueError(f"{text!r} is not a number of {what}: give a whole number from {least} to {most}, such as 4")
    return int(word)


def parse_cpus(text: str) -> int | float:
    """A number of CPUs with at most three decimals: `4`, `0.25`, `0`."""
    word = text.strip()
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", word):
        raise ValueError(f"{text!r} is not a number of cpus: give a number such as 4, 0.25 or 0")
    return int(float(word)) if float(word).is_integer() else float(word)


def _seconds(word: str) -> int | None:
    if match := _DAYS.fullmatch(word):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return days * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds
    if _COLONS.fullmatch(word):
        parts = [int(part) for part in word.split(":")]
        if len(parts) == 3:
            return parts[0] * HOUR_S + parts[1] * MINUTE_S + parts[2]
        return parts[0] * MINUTE_S + (parts[1] if len(parts) == 2 else 0)
    if match := _DECIMAL_TIME.fullmatch(word):
        exact = Fraction(match[1]) * _UNIT_S[match[2]]
        return int(exact) if exact.denominator == 1 else None
    if word and (match := _SUFFIXES.fullmatch(word)):
        return sum(int(part or 0) * unit for part, unit in zip(match.groups(), _UNIT_S.values(), strict=True))
    return None


def limit_until(time_s: int | None, deadline_at: float | None, began_at: float) -> int | None:
    """The time limit of a job that began then, in seconds: its own, and none beyond its deadline."""
    if deadline_at is None:
        return time_s
    left_s = max(1, int(deadline_at - began_at))
    return left_s if time_s is None else min(time_s, left_s)
