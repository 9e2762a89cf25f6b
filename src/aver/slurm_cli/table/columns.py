"""Columns of sacct, sstat, sacctmgr and sshare: a name, a width, how a text is cut, and what it shows of a row.

`--format` names them whole or cut, each with `%[-]width`; parsable output has marks between the texts and no widths.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from aver.spec.getopt import Parsed

    Field = tuple[str, int, str, Callable[[Any], object]]

TEXT, CUT, WHOLE = "text", "cut", "whole"  # cut with a `+`, cut as it is, not cut
LARGEST_WIDTH = 4096


class Column:
    """One field of `--format`, with its width: negative is to the left, 0 is nothing."""

    def __init__(self, name: str, width: int, cut: str, show: Callable[[Any], object]) -> None:
        self.name = name
        self.width = width
        self.cut = cut
        self.show = show

    def cell(self, row: Any) -> str:
        text = str(self.show(row))
        width = abs(self.width)
        if len(text) > width and self.cut != WHOLE:
            text = text[:width] if self.cut == CUT or not width else text[: width - 1] + "+"
        return text.ljust(width) if self.width < 0 else text.rjust(width) if width else ""

    def header(self) -> str:
        width = abs(self.width)
        return self.name[:width].ljust(width) if self.width < 0 else self.name[:width].rjust(width)


class Layout:
    """How lines are put together: with widths, or with marks between (-P) or behind (-p) the texts."""

    def __init__(self, parsed: Parsed) -> None:
        given = parsed.get("delimiter")
        self.mark = "|" if given is None else given
        self.style = next((name for name, _ in reversed(parsed.given) if name in ("parsable", "parsable2")), None)
        self.has_header = not parsed.has("noheader")

    def header(self, columns: Sequence[Column]) -> str:
        if not self.has_header:
            return ""
        if self.style is not None:
            return self.line([column.name for column in columns])
        rule = self.line(["-" * abs(column.width) for column in columns])
        return self.line([column.header() for column in columns]) + rule

    def lines(self, columns: Sequence[Column], rows: Iterable[Any]) -> str:
        if self.style is not None:
            return "".join([self.line([str(column.show(row)) for column in columns]) for row in rows])
        return "".join([self.line([column.cell(row) for column in columns]) for row in rows])

    def line(self, cells: list[str]) -> str:
        if self.style == "parsable2":
            return self.mark.join(cells) + "\n"
        if self.style == "parsable":
            return "".join([cell + self.mark for cell in cells]) + "\n"
        return "".join([cell + " " for cell in cells]) + "\n"


def parse_columns(text: str, find: Callable[[str], Sequence[Field]]) -> list[Column]:
    """`name[%[-]width],…`; `find` gives the fields of a name in small letters. ValueError has what is not a field."""
    found: list[Column] = []
    for part in text.split(","):
        typed, percent, size = part.strip().partition("%")
        name = typed.strip().lower()
        if not name:
            continue
        fitting = find(name)
        if not fitting:
            raise ValueError(typed)
        for full, usual, cut, show in fitting:
            found.append(Column(full, parse_width(size) if percent else usual, cut, show))
    return found


def parse_width(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    digits = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    return sign * min(int(digits), LARGEST_WIDTH) if digits and len(digits) < 9 else 0


def names_in_columns(fields: Iterable[Field]) -> str:
    """The names four in a line, as `--helpformat` prints them."""
    names = [field[0] for field in fields]
    return "".join([" ".join(f"{name:<19}" for name in names[at : at + 4]) + "\n" for at in range(0, len(names), 4)])
