"""What is wrong with a file: every mistake at once, each with its place and a hint.

A reader notes mistakes and goes on; the file is refused at the end, with all of them.
Lines and columns count from 1. A mistake's text is one line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Protocol

from aver.errors import UsageError
from aver.model.record import Record
from aver.model.suggestion import did_you_mean, shown
from aver.printable import printable

__all__ = ["Mistake", "Mistakes", "Place", "Point", "SpecError", "did_you_mean", "printable", "shown"]


RAISED = 1 << 26  # more lines than a file can have: the lines of included files are numbered from multiples of it


class Place(Protocol):
    """Anything that stands at a line and a column of a file."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class Mistake(Record):
    """`line` 0 is the file as a whole."""

    file: str
    line: int
    column: int
    text: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.text}; {self.hint}" if self.hint else f"{place}: {self.text}"


class Point(Record):
    line: int
    column: int


class SpecError(UsageError):
    """A flow, script or command is wrong. Holds all its mistakes; its text has one line for each."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class Mistakes:
    """Collects the mistakes of one file and of those that it includes. The same mistake at a place counts once."""

    def __init__(self, file: str) -> None:
        self.file = printable(file)
        self.source = ""  # the file's text, once it is known
        self._starts: list[int] = []  # of its lines
        self._found: dict[Mistake, None] = {}
        self._included: list[Mistakes] = []

    def add(self, place: Place | None, text: str, hint: str = "") -> None:
        line, column = (place.line, place.column) if place else (0, 0)
        file, line = self._own(line)
        self._found[Mistake(file.file, line, column, printable(text), printable(hint))] = None

    def include(self, other: Mistakes) -> int:
        """Take over the mistakes of an included file; return by how much the lines of its nodes are to be raised."""
        self._found |= other._found
        self._included.append(other)
        return len(self._included) * RAISED

    def place_text(self, line: int) -> str:
        """`line 7`; of an included file `more.yaml:7`."""
        file, own = self._own(line)
        return f"line {own}" if file is self else f"{file.file}:{own}"

    def _own(self, line: int) -> tuple[Mistakes, int]:
        """The file that has this line, and the line's number in it."""
        which, own = divmod(line, RAISED)
        return (self._included[which - 1] if which else self), own

    def inside(self, place: Place, fragment: str, count: int) -> Place:
        """Where the fragment stands in a text that begins at `place`, after `count` others; `place` if unknown."""
        file, own = self._own(place.line)
        if file is not self:
            found = file.inside(Point(own, place.column), fragment, count)
            return Point(found.line + place.line - own, found.column)
        if not self._starts:
            self._starts = [0, *(found.end() for found in re.finditer("\n", self.source))]
        if place.line > len(self._starts):
            return place
        at = self._starts[place.line - 1] + place.column - 2
        for _ in range(count + 1):
            at = self.source.find(fragment, at + 1)
            if at < 0:
                return place
        line = bisect_right(self._starts, at)
        return Point(line, at - self._starts[line - 1] + 1)

    def __len__(self) -> int:
        return len(self._found)

    def refuse_if_any(self) -> None:
        """Raise SpecError with all mistakes, in the order of the file, if there are any."""
        if self._found:
            files = {one.file: at for at, one in reversed([*enumerate([self, *self._included])])}
            raise SpecError(sorted(self._found, key=lambda one: (files[one.file], one.line, one.column)))
