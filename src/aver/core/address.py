"""How jobs of a flow are named in `needs` and on the command line: a name, a glob, an address.

`train` is a job with all its members; `prep-*` every job whose name matches; `train[seed=2]` the
members of a matrix whose seed is 2. Brackets without `=` are a glob's character class. Job names
have no brackets, braces, stars or question marks, so nothing is ambiguous. Pure.
"""

from __future__ import annotations

import fnmatch
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

JOB_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
_MEMBERS = re.compile(r"([^=]*)\[([^\[\]]*=[^\[\]]*)\]", re.DOTALL)
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Address:
    """A name or glob, and the values that its members must have; empty: all members."""

    name: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def is_glob(self) -> bool:
        return _WILD.search(self.name) is not None


def parse_address(text: str) -> Address:
    """Read `name`, `glob*` or `name[axis=value,axis=value]`; raise ValueError for half an address."""
    match = _MEMBERS.fullmatch(text)
    if match is None:
        return Address(text)
    values = []
    for part in match[2].split(","):
        axis, equals, value = part.partition("=")
        if not (equals and axis.strip()):
            raise ValueError(f'"{text}" is no address; write it as name[axis=value]')
        values.append((axis.strip(), value.strip()))
    return Address(match[1], tuple(values))


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
        fits = re.compile(fnmatch.translate(glob)).match
        for position in range(start, len(self._sorted)):
            name = self._sorted[position]
            if not name.startswith(prefix):
                break
            if fits(name):
                found.append(name)
        return found
