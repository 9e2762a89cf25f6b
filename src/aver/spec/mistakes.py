"""What is wrong with a file: every mistake at once, each with its place and a hint.

A reader notes mistakes and goes on; the file is refused at the end, with all of them.
Lines and columns count from 1. A mistake's text is one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Protocol

from aver.errors import UsageError
from aver.model.record import Record
from aver.printable import printable


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


class SpecError(UsageError):
    """A flow, script or command is wrong. Holds all its mistakes; its text has one line for each."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class Mistakes:
    """Collects the mistakes of one file. The same mistake at the same place counts once."""

    def __init__(self, file: str) -> None:
        self.file = printable(file)
        self._found: dict[Mistake, None] = {}

    def add(self, place: Place | None, text: str, hint: str = "") -> None:
        line, column = (place.line, place.column) if place else (0, 0)
        self._found[Mistake(self.file, line, column, printable(text), printable(hint))] = None

    def __len__(self) -> int:
        return len(self._found)

    def refuse_if_any(self) -> None:
        """Raise SpecError with all mistakes, in the order of the file, if there are any."""
        if self._found:
            raise SpecError(sorted(self._found, key=lambda mistake: (mistake.line, mistake.column)))


def shown(text: str) -> str:
    """The text in quotes, cut so that a message stays readable."""
    return f'"{text}"' if len(text) <= 60 else f'"{text[:57]}..."'


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint that names the nearest known word, or an empty one."""
    if len(word) > 255:
        return ""
    if len(known) > 2000:  # difflib compares with each: look only at those that begin alike
        known = [name for name in known if name[:1] == word[:1] and abs(len(name) - len(word)) <= 2][:2000]
    nearest = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if not nearest:
        lower = {name.lower(): name for name in known}
        nearest = [lower[match] for match in difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)]
    return f'did you mean "{nearest[0]}"?' if nearest else ""
