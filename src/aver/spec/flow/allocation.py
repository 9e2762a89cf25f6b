"""What `--allocation`, `--allocations` and `--headroom` ask for."""

from __future__ import annotations

import shlex

from aver.errors import UsageError
from aver.model.job import Allocation
from aver.model.units import parse_time

DEFAULT_HEADROOM_S = 120  # Slurm looks at limits every 30 s, and then waits between TERM and KILL
MOST = 100
LONGEST_HEADROOM_S = 7 * 86400
OWNED = {
    "-J": "the name is Aver's", "--job-name": "the name is Aver's", "-a": "use --allocations",
    "--array": "use --allocations", "--wrap": "the script is Aver's", "--parsable": "leave it out",
    "-W": "leave it out", "--wait": "leave it out", "--test-only": "leave it out", "--requeue": "leave it out",
    "-o": "leave it out", "--output": "leave it out", "-e": "leave it out", "--error": "leave it out",
    "-i": "leave it out", "--input": "leave it out", "--export": "use --env", "-D": "use --folder",
    "--chdir": "use --folder",
}  # fmt: skip


def allocation_of(words: str | None, count: str | None = None, headroom: str | None = None) -> Allocation | None:
    """None where no allocation is asked for; UsageError for what can't be meant."""
    if words is None:
        if count is not None or headroom is not None:
            raise UsageError('--allocations and --headroom say more of --allocation "-N 4 -t 4:00:00"')
        return None
    try:
        split = tuple(shlex.split(words))
    except ValueError as error:
        raise UsageError(f"--allocation {words!r}: {str(error).lower()}") from None
    if not split or not split[0].startswith("-"):
        raise UsageError(f'--allocation {words!r}: give options of sbatch, such as "-N 4 -t 4:00:00"')
    for word in split:
        name = word.partition("=")[0]
        if name in OWNED:
            raise UsageError(f"--allocation {words!r}: {name} is Aver's own; {OWNED[name]}")
    return Allocation(split, _count(count), _headroom(headroom))


def _count(text: str | None) -> int:
    if text is None:
        return 1
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= MOST:
        raise UsageError(f"--allocations {text}: give a number from 1 to {MOST}")
    return int(text)


def _headroom(text: str | None) -> int:
    """A bare number is seconds."""
    if text is None:
        return DEFAULT_HEADROOM_S
    try:
        seconds = int(text) if text.isascii() and text.isdecimal() else parse_time(text)
    except ValueError as error:
        raise UsageError(f"--headroom: {error}") from None
    if seconds is None or not 0 <= seconds <= LONGEST_HEADROOM_S:
        raise UsageError(f"--headroom {text}: give 120 (seconds), 90s or 5m")
    return seconds
