"""How Slurm writes what it speaks of: `7`, `7_3`, `7_[1,3,5-7:2%4]`, `7+1`, and with a step `7_3.batch`, `7.0`.

Read, never completed: a list that was cut (`7_[1,3,...]`) says so, and what is none of these is None.
"""

from __future__ import annotations

import re

from aver.model.record import Record

_LARGEST = 0xFFFF_FFFF  # ids and indices have 32 bits
_ID = re.compile(
    r"(?P<job>[0-9]{1,10})"
    r"(?:_(?:(?P<index>[0-9]{1,10})|\[(?P<members>[0-9,:%.-]{1,100000})\])|\+(?P<het>[0-9]{1,10}))?"
    r"(?:\.(?P<step>[A-Za-z0-9_+-]{1,64}))?"
)
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")
_LIST = re.compile(r"(?P<ranges>[0-9,:-]*)(?P<cut>\.\.\.)?(?:%(?P<limit>[0-9]{1,10}))?")


class Members(Record):
    """Members of an array, as ranges (first, last, stride)."""

    ranges: tuple[tuple[int, int, int], ...]
    limit: int | None = None  # so many at one time: `%2`
    is_whole: bool = True  # False: the list was cut, and there may be more

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and any(
            first <= index <= last and (index - first) % stride == 0 for first, last, stride in self.ranges
        )

    def __len__(self) -> int:
        return sum((last - first) // stride + 1 for first, last, stride in self.ranges)


class SlurmId(Record):
    """At most one of index, members and het is there."""

    job: int  # of an array: the array's id; of a heterogeneous job: its leader's
    index: int | None = None
    members: Members | None = None  # those that still wait, spoken of together
    het: int | None = None  # which part of a heterogeneous job
    step: str = ""  # `batch`, `extern`, `interactive`, `0` …; empty: the job itself


def parse_id(text: str) -> SlurmId | None:
    """Read one id; None for anything else."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    job, index, het = (_number(match[group]) for group in ("job", "index", "het"))
    members = None if match["members"] is None else parse_members(match["members"])
    lost = (match["index"], index), (match["het"], het), (match["members"], members)
    if job is None or any(written is not None and read is None for written, read in lost):
        return None
    return SlurmId(job, index, members, het, match["step"] or "")


def parse_members(text: str) -> Members | None:
    """Read `1,3,5-7:2%4`, also cut (`1,3,...`); None for anything else."""
    match = _LIST.fullmatch(text)
    if match is None:
        return None
    limit = None if match["limit"] is None else _number(match["limit"])
    if match["limit"] is not None and limit is None:
        return None
    written = match["ranges"]
    if match["cut"] is not None:  # what stands right before the cut may be half a number
        written = written[: written.rfind(",") + 1].removesuffix(",")
    ranges: list[tuple[int, int, int]] = []
    for part in written.split(",") if written or match["cut"] is None else ():
        one = _RANGE.fullmatch(part)
        if one is None:
            return None
        first, last, stride = _number(one[1]), _number(one[2] or one[1]), _number(one[3] or "1")
        if first is None or last is None or not stride or last < first:
            return None
        ranges.append((first, last, stride))
    return Members(tuple(ranges), limit, match["cut"] is None)


def _number(text: str | None) -> int | None:
    if text is None or int(text) > _LARGEST:
        return None
    return int(text)
