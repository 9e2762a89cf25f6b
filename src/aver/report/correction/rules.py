"""Better requests for a job, from how its attempts ended and what they used.

Pure. All members of a matrix are corrected together, since they have one request. What always holds: a request
grows only after a member ran out of it (or used more cpus than it asked for), it shrinks only if every attempt
completed and every figure is known, and a failure whose cause was something else changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from aver.model.job import Request
from aver.model.record import Record
from aver.model.states import State
from aver.model.units import DAY_S, HOUR_S, LARGEST_BYTES, LONGEST_S, MINUTE_S, size_text
from aver.render.verdict import duration_words, limit_words
from aver.report.measure import GIB, MIB, NEAR, Measured, Resource, Rules

TOLD = frozenset({State.COMPLETED, State.OUT_OF_MEMORY, State.TIMEOUT})  # ends whose figures say what is needed


class Change(Record):
    """The new value of a request; `old` None: no limit."""

    resource: Resource
    old: int | float | None
    new: int
    why: str


class Blocked(Record):
    """The job needs more, but no larger request can be made."""

    resource: Resource
    why: str


class Group(Record):
    """A job with all that is known of it: one item for each attempt of each member that has ended.

    `is_whole`: every member is settled and has ended by itself. `lead_s`: how long before the limit it is warned.
    """

    request: Request
    attempts: Sequence[Measured]
    is_whole: bool
    lead_s: int = 0


def correct(group: Group, rules: Rules) -> tuple[Change | Blocked, ...]:
    """Return all changes by the rules, larger and smaller requests, in the order mem, time, cpus."""
    return (
        *grow(group, rules),
        *_changes(_more_cpus(group, rules)),
        *_savings(group, rules),
    )


def grow(group: Group, rules: Rules) -> tuple[Change | Blocked, ...]:
    """Return only the growth that jobs need to complete: memory after OUT_OF_MEMORY, time after TIMEOUT."""
    return _changes(_more_memory(group, rules), _more_time(group, rules))


def whole_memory(amount: float) -> int:
    """Rounded up: to whole GiB above one, to whole MiB below."""
    return _up(amount, GIB if amount > GIB else MIB)


def whole_time(seconds: float) -> int:
    """Rounded up to whole minutes, the unit of Slurm's limits."""
    return _up(seconds, MINUTE_S)


def value_text(resource: Resource, value: int | float) -> str:
    """The value as a flow has it: `6G`, `84m`, `2h`, `4`."""
    match resource:
        case Resource.MEM:
            return size_text(int(value))
        case Resource.TIME:
            unit, letter = next(pair for pair in _TIME_UNITS if value % pair[0] == 0)
            return f"{int(value) // unit}{letter}"
        case Resource.CPUS:
            return str(value)


_TIME_UNITS = ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m"), (1, "s"))


def _more_memory(group: Group, rules: Rules) -> Change | Blocked | None:
    short = [one for one in group.attempts if one.state == State.OUT_OF_MEMORY]
    if not short:
        return None
    need = max(_memory_after(one, rules) for one in short)
    need = max([need, *(one.peak_bytes * rules.mem_factor for one in _told(group) if one.peak_bytes is not None)])
    if need <= 0:
        return Blocked(Resource.MEM, "it ran out of memory without a limit, and its peak is not known")
    limits = {one.mem_bytes for one in short if one.mem_bytes is not None}
    at = max(limits, default=None)
    where = "without a limit" if at is None else f"at {_up_to(limits)}{limit_words(at)}"
    why = f"{_of(len(short), group)} ran out of memory {where}"
    return _grown(Resource.MEM, group.request.mem_bytes, at, whole_memory(need), rules.mem_ceiling_bytes, why)


def _memory_after(one: Measured, rules: Rules) -> float:
    """What an attempt that ran out of memory asks for. Its peak may be a sample from before the end."""
    peak, limit = one.peak_bytes or 0, one.mem_bytes
    need = peak * rules.mem_factor
    if limit is not None and (peak >= limit * NEAR or need <= limit):
        need = max(need, limit * rules.limit_factor)
    return need


def _more_time(group: Group, rules: Rules) -> Change | Blocked | None:
    late = [
        one.time_s
        for one in group.attempts
        if one.state == State.TIMEOUT and one.time_s is not None and not one.is_past_deadline
    ]
    if not late:
        return None
    ended = [one.elapsed_s for one in group.attempts if one.state == State.COMPLETED and one.elapsed_s is not None]
    need = max([*late, *ended]) * rules.time_factor
    why = f"{_of(len(late), group)} passed the limit of {_up_to(set(late))}{duration_words(max(late))}"
    return _grown(Resource.TIME, group.request.time_s, max(late), whole_time(need), rules.time_ceiling_s, why)


def _up_to(limits: set[int]) -> str:
    return "up to " if len(limits) > 1 else ""


def _grown(
    resource: Resource, old: int | None, tried: int | None, need: int, ceiling: int | None, why: str
) -> Change | Blocked | None:
    """`tried` is the largest limit that was not enough: less than that, or as much, would fail again."""
    if (old is None and tried is not None) or (old is not None and old >= need):
        return None  # the limit is gone since, or has grown enough
    most = LARGEST_BYTES if resource is Resource.MEM else LONGEST_S
    limit = most if ceiling is None else min(most, ceiling)
    new = min(need, limit)
    if tried is not None and new <= tried:
        return Blocked(resource, f"{why}, and {value_text(resource, limit)} is the most that may be asked for")
    if old is not None and new <= old:
        return None
    return Change(resource, old, new, why)


def _more_cpus(group: Group, rules: Rules) -> Change | None:
    asked = group.request.cpus
    used = [cpus for one in _told(group) if (cpus := _sure_cpus(one, rules)) is not None]
    over = [cpus for cpus in used if cpus > asked * rules.cpu_factor]
    if not over or not asked:
        return None
    why = f"{_of(len(over), group)} kept up to {max(over):.1f} cpus busy"
    return Change(Resource.CPUS, asked, math.ceil(round(max(over), 2)), why)


def _savings(group: Group, rules: Rules) -> tuple[Change, ...]:
    if not group.is_whole or not group.attempts or any(one.state != State.COMPLETED for one in group.attempts):
        return ()
    request = group.request
    found = (
        _saved(
            Resource.MEM,
            request.mem_bytes,
            whole_memory(max(_top([one.peak_bytes for one in group.attempts]) * rules.mem_factor, 1)),
            rules.mem_floor_bytes,
            rules.mem_saving_bytes,
            [one.peak_bytes if one.is_peak_whole else None for one in group.attempts],
        ),
        _saved(
            Resource.TIME,
            request.time_s,
            whole_time(max(_top([one.elapsed_s for one in group.attempts]) * rules.time_factor, 1)),
            max(rules.time_floor_s, 2 * group.lead_s),
            rules.time_saving_s,
            [one.elapsed_s for one in group.attempts],
        ),
        _saved(
            Resource.CPUS,
            request.cpus,
            math.ceil(round(_top([_sure_cpus(one, rules) for one in group.attempts]), 2)),
            rules.cpu_floor,
            rules.cpu_saving,
            [None if one.is_cpu_least else _sure_cpus(one, rules) for one in group.attempts],
        ),
    )
    return _only(found)


def _saved(
    resource: Resource, old: int | float | None, enough: int, floor: int, saving: int, used: Sequence[float | None]
) -> Change | None:
    new = max(enough, floor)
    if old is None or None in used or old - new <= saving:
        return None
    match resource:
        case Resource.MEM:
            most = f"the highest peak of {len(used)} was {limit_words(int(_top(used)))}"
        case Resource.TIME:
            most = f"the longest of {len(used)} took {duration_words(_top(used))}"
        case Resource.CPUS:
            most = f"the busiest of {len(used)} kept {_top(used):.1f} cpus busy"
    return Change(resource, old, new, most)


def _sure_cpus(one: Measured, rules: Rules) -> float | None:
    """Cpus in use, where the attempt was long enough to tell."""
    if one.elapsed_s is None or one.elapsed_s < rules.cpu_least_s:
        return None
    return one.used_cpus


def _told(group: Group) -> list[Measured]:
    return [one for one in group.attempts if one.state in TOLD]


def _top(values: Sequence[float | None]) -> float:
    return max((value for value in values if value is not None), default=0)


def _of(count: int, group: Group) -> str:
    total = len(group.attempts)
    noun = "attempt" if total == 1 else "attempts"
    return f"{count} of {total} {noun}" if total > 1 else "it"


def _changes(*found: Change | Blocked | None) -> tuple[Change | Blocked, ...]:
    return tuple(one for one in found if one is not None)


def _only(found: Sequence[Change | None]) -> tuple[Change, ...]:
    return tuple(one for one in found if one is not None)


def _up(amount: float, unit: int) -> int:
    return math.ceil(round(amount / unit, 6)) * unit
