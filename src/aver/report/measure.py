"""Compare what attempts requested with what they used.

Pure. Unknown is None and stays None: no share is made from a figure that nobody measured. A share of 1.0 is
all that was asked for. Marks say where a request is too small, or larger than is worth it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from aver.model.record import Record
from aver.model.states import State
from aver.model.units import MINUTE_S

GIB = 1024**3
MIB = 1024**2
NEAR = 0.95  # of a limit, where a measurement counts as having reached it: samples lag behind the kernel


class Resource(StrEnum):
    """What a request asks for; the values are the keys of a flow."""

    MEM = "mem"
    TIME = "time"
    CPUS = "cpus"


class Mark(StrEnum):
    """How a use compares with its request."""

    OVER = "over"  # reached the limit, or took more than was asked for
    UNDER = "under"  # a smaller request would do, and would be worth it
    FINE = "fine"
    UNKNOWN = "unknown"


class Measured(NamedTuple):
    """One settled attempt: what it might use (None: no limit), and what it used (None: not known)."""

    state: str
    cpus: int | float
    mem_bytes: int | None
    time_s: int | None
    elapsed_s: float | None
    cpu_s: float | None
    peak_bytes: int | None
    is_peak_whole: bool = True  # else it is that of the largest task alone, as accounting has it, or a lower bound
    is_past_deadline: bool = False  # what ended it was no limit of its own
    is_cpu_least: bool = False  # children that nobody waited for may have used more

    @property
    def used_cpus(self) -> float | None:
        """CPUs in use on average."""
        if self.cpu_s is None or not self.elapsed_s:
            return None
        return self.cpu_s / self.elapsed_s


class Rules(Record):
    """When a request is corrected, and to what. Each figure is an option of `aver usage --correct`."""

    mem_factor: float = 1.2  # of the highest peak
    limit_factor: float = 1.5  # of a memory limit that was reached
    time_factor: float = 1.4  # of a time limit that passed, and of the longest time
    cpu_factor: float = 1.1  # more than this times the cpus asked for is over-use
    mem_saving_bytes: int = GIB  # less is asked for only if more than this is saved
    time_saving_s: int = 30 * MINUTE_S
    cpu_saving: int = 1
    mem_floor_bytes: int = 512 * MIB  # never less than this
    time_floor_s: int = 10 * MINUTE_S
    cpu_floor: int = 1
    cpu_least_s: float = 10.0  # how many cpus a shorter attempt used says nothing
    mem_ceiling_bytes: int | None = None  # never more than this
    time_ceiling_s: int | None = None


def share(used: float | None, asked: float | None) -> float | None:
    """Return used / requested; None if one of them is unknown or unlimited."""
    return None if used is None or not asked else used / asked


def mem_mark(one: Measured, rules: Rules) -> Mark:
    if one.state == State.OUT_OF_MEMORY:
        return Mark.OVER
    if one.peak_bytes is None:
        return Mark.UNKNOWN
    if one.mem_bytes is None:
        return Mark.FINE
    if one.peak_bytes >= one.mem_bytes * NEAR:
        return Mark.OVER
    if not one.is_peak_whole:
        return Mark.FINE  # all tasks together may have had more
    enough = max(one.peak_bytes * rules.mem_factor, rules.mem_floor_bytes)
    return Mark.UNDER if one.mem_bytes - enough > rules.mem_saving_bytes else Mark.FINE


def time_mark(one: Measured, rules: Rules) -> Mark:
    if one.state == State.TIMEOUT and not one.is_past_deadline:
        return Mark.OVER
    if one.elapsed_s is None:
        return Mark.UNKNOWN
    if one.time_s is None:
        return Mark.FINE
    if one.elapsed_s >= one.time_s * NEAR:
        return Mark.OVER
    enough = max(one.elapsed_s * rules.time_factor, rules.time_floor_s)
    return Mark.UNDER if one.time_s - enough > rules.time_saving_s else Mark.FINE


def cpu_mark(one: Measured, rules: Rules) -> Mark:
    used = one.used_cpus
    if used is None:
        return Mark.UNKNOWN
    if not one.cpus or (one.elapsed_s is not None and one.elapsed_s < rules.cpu_least_s):
        return Mark.FINE
    if used > one.cpus * rules.cpu_factor:
        return Mark.OVER
    if one.is_cpu_least:
        return Mark.FINE  # it may have used more
    return Mark.UNDER if one.cpus - max(used, rules.cpu_floor) > rules.cpu_saving else Mark.FINE


def worst(marks: set[Mark]) -> Mark:
    """The mark of many: over-use of one counts; all must be known to be fine."""
    for mark in (Mark.OVER, Mark.UNDER, Mark.FINE):
        if mark in marks:
            return mark
    return Mark.UNKNOWN
