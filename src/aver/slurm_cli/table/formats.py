"""The formats of squeue and sinfo: `-o "%.18i %8j|"` and `-O "JobID:8|,State:.12"`, read as Slurm reads them.

What is not a field is printed as it stands, and complained about once; nothing here fails.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Field = tuple[str, Callable[[Any], object]]

DEFAULT_WIDTH = 20
LARGEST_WIDTH = 4096


class Column:
    """A field with its width (0: as wide as it is), or text alone."""

    def __init__(self, field: Field | None, width: int = 0, is_right: bool = False, suffix: str = "") -> None:
        self.field = field
        self.width = width
        self.is_right = is_right
        self.suffix = suffix

    def show(self, value: object) -> str:
        text = str(value)
        if self.width:
            text = text[: self.width]
            text = text.rjust(self.width) if self.is_right else text.ljust(self.width)
        return text + self.suffix

    def header(self) -> str:
        return self.suffix if self.field is None else self.show(self.field[0])

    def cell(self, row: Any) -> str:
        return self.suffix if self.field is None else self.show(self.field[1](row))


class Format:
    def __init__(self, columns: list[Column], unknown: list[str]) -> None:
        self.columns = columns
        self.unknown = unknown  # what was asked for and is not a field

    def header(self) -> str:
        return "".join([column.header() for column in self.columns]) + "\n"

    def lines(self, rows: Iterable[Any]) -> str:
        return "".join(["".join([column.cell(row) for column in self.columns]) + "\n" for row in rows])


def parse_letters(text: str, fields: Mapping[str, Field], every: str) -> Format:
    """`%[[.]size]type[suffix]`, with any text before the first `%`; `every` are the letters of `%all`."""
    prefix, *tokens = text.split("%")
    columns = [Column(None, suffix=prefix)] if prefix else []
    unknown: list[str] = []
    for token in tokens:
        if token.startswith("all"):
            letters = [letter for letter in every if letter in fields]
            columns += [Column(fields[letter], suffix="|") for letter in letters[:-1]]
            columns += [Column(fields[letter], suffix=token[3:]) for letter in letters[-1:]]
            continue
        at, is_right, width = _size(token)
        letter, suffix = token[at : at + 1], token[at + 1 :]
        if letter in fields:
            columns.append(Column(fields[letter], width, is_right, suffix))
        elif token:
            unknown.append(letter)
            columns.append(Column(None, suffix=f"%{token}"))
    return Format(columns, unknown)


def parse_names(text: str, fields: Mapping[str, Field]) -> Format:
    """`type[:[.][size][suffix]]`, with commas between them; names in any case."""
    columns: list[Column] = []
    unknown: list[str] = []
    for token in text.split(","):
        name, colon, rest = token.partition(":")
        at, is_right, width = _size(rest) if colon else (0, False, DEFAULT_WIDTH)
        field = fields.get(name.strip().lower())
        if field is not None:
            columns.append(Column(field, width, is_right, rest[at:]))
        elif name.strip().lower() == "all":
            columns += [Column(one, suffix="|") for one in fields.values()]
        elif token:
            unknown.append(name)
            columns.append(Column(None, suffix=rest[at:]))
    return Format(columns, unknown)


def _size(token: str) -> tuple[int, bool, int]:
    """Where the size ends, whether it is right-justified, and the size."""
    start = 1 if token.startswith("#") else 0  # sinfo's mark for a width that may grow
    is_right = token[start : start + 1] == "."
    start = at = start + is_right
    while at < len(token) and token[at] in "0123456789":
        at += 1
    digits = token[start:at]
    return at, is_right, min(int(digits), LARGEST_WIDTH) if digits and len(digits) < 9 else LARGEST_WIDTH * bool(digits)
