"""How jobs of a flow are named in `needs` and on the command line: a name, a glob, an address.

`train` is a job with all its members; `prep-*` every job whose name matches; `train[seed=2]` the
members of a matrix whose seed is 2, and so does `train[seed=*]` all of them; `train[same]`, in `needs`
alone, those that have the values of the member that needs them. Only `*` and `?` are
special in globs. Job names have none of these characters, so nothing is ambiguous. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

from aver.model.record import Record

JOB_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
SAME = "same"
_WILD = re.compile(r"[*?]")


class Address(Record):
    """A name or glob, and the values that its members must have; empty: all members."""

    name: str
    values: tuple[tuple[str, str], ...] = ()
    is_same: bool = False  # the members with the same values of all axes that both jobs have

    @property
    def is_glob(self) -> bool:
        return is_glob(self.name)


def parse_address(text: str) -> Address:
    """Read `name`, `glob*`, `name[axis=value,axis=value]` or `name[same]`; raise ValueError for half an address."""
    name, bracket, rest = text.partition("[")
    if not bracket:
        return Address(text)
    if not rest.endswith("]"):
        raise ValueError(f'"{text}" is not an address; write name[axis=value]')
    if rest == "*]":
        return Address(name)
    if rest == f"{SAME}]":
        return Address(name, (), True)
    values: list[tuple[str, str]] = []
    for piece in rest[:-1].split(","):
        axis, equals, value = piece.partition("=")
        if equals and axis.strip():
            values.append((axis.strip(), value))
        elif values and not equals:  # a comma inside a value
            values[-1] = (values[-1][0], f"{values[-1][1]},{piece}")
        else:
            raise ValueError(f'"{text}" is not an address; write name[axis=value]')
    return Address(name, tuple(values))


def address_text(address: Address) -> str:
    """The address as it is written."""
    inside = ",".join(f"{axis}={value}" for axis, value in address.values)
    return f"{address.name}[{inside}]" if inside else address.name


def is_glob(text: str) -> bool:
    return _WILD.search(text) is not None


def glob_pattern(glob: str) -> re.Pattern[str]:
    """For `fullmatch`."""
    return re.compile(re.escape(glob).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


class NameIndex:
    """The names of a flow, for globs: a glob costs as much as the names that begin as it does."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sorted = sorted(names)

    def matching(self, glob: str) -> list[str]:
        """The names that match, in order."""
        wild = _WILD.search(glob)
        prefix = glob[: wild.start()] if wild else glob
        start = bisect_left(self._sorted, prefix)
        found = []
        fits = glob_pattern(glob).fullmatch
        for position in range(start, len(self._sorted)):
            name = self._sorted[position]
            if not name.startswith(prefix):
                break
            if fits(name):
                found.append(name)
        return found
