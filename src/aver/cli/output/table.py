"""Tables: all columns and whole values in pipes and files; on a terminal what fits its width.

A plain table has stable columns, no colours and no box characters, and never cuts a value. On a terminal columns that
say nothing are left out, and names and reasons are shortened with an ellipsis until a line fits.
"""

from __future__ import annotations

from collections.abc import Callable

from aver.cli.output.text import BAD, COLOURS, Output
from aver.model.record import Record, replace
from aver.model.states import State
from aver.printable import one_line, printable

GAP = 2
LEAST = 8  # columns that a shortened value keeps
EMPTY = ("-", "")
ENDS = frozenset({"NAME", "GROUP", "NEEDS"})  # columns whose values differ at their ends
SHORTENED = frozenset({"NAME", "REASON", "WARNING", "NODE"})  # by their heads, beside the widest one


class Table(Record):
    """`right` are the columns that hold numbers; `wide` is the column that is shortened first on a terminal.

    `silent` are values that say nothing, by column: a column of only these is left out on a terminal.
    `spare` are columns that are left out on a terminal, in this order, until a line fits.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    wide: int = -1
    silent: tuple[tuple[int, tuple[str, ...]], ...] = ()
    spare: tuple[int, ...] = ()


def show_table(output: Output, table: Table) -> None:
    """Write the table in the form that fits where it goes."""
    if output.out_is_terminal:
        for line in draw(table, output.width, output.has_colours, output.masking.whole):
            output.raw(f"{line}\n".encode("utf-8", "surrogateescape"))
        return
    output.line("\n".join(plain(table)))


def fits(table: Table, width: int) -> bool:
    """Whether a terminal shows all of the table, but for what may be shortened."""
    shown = _shown(table, width)
    return len(shown.heads) == len(_kept(table)) and sum(_widths(shown, width)) + GAP * (len(shown.heads) - 1) <= width


def plain(table: Table) -> list[str]:
    """Return the lines of the table, each column as wide as its widest value, two spaces between."""
    cells = [table.heads, *(tuple(one_line(cell) for cell in row) for row in table.rows)]
    widths = [max(cell_count(row[column]) for row in cells) for column in range(len(table.heads))]
    return [
        "  ".join(
            _padded(cell, width, column in table.right)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def draw(table: Table, width: int, has_colours: bool, mask: Callable[[str], str] = str) -> list[str]:
    """Return the lines of the table as a terminal of this width shows it."""
    masked = replace(table, rows=tuple(tuple(mask(printable(cell)) for cell in row) for row in table.rows))
    shown = _shown(masked, width)
    widths = _widths(shown, width)
    lines = []
    for number, row in enumerate((shown.heads, *shown.rows)):
        cells = []
        for column, (cell, size) in enumerate(zip(row, widths, strict=True)):
            style = ("1" if number == 0 else _style(cell)) if has_colours else ""
            is_last = column == len(row) - 1 and column not in shown.right
            short = (shortened if shown.heads[column] in ENDS else cut)(cell, size)
            text = short if is_last else _padded(short, size, column in shown.right)
            cells.append(f"\x1b[{style}m{text}\x1b[0m" if style else text)
        lines.append("  ".join(cells).rstrip())
    return lines


def shortened(text: str, width: int) -> str:
    """The text, or its ends and an ellipsis between them where it is wider than the given columns.

    Members of a matrix differ at their ends.
    """
    if cell_count(text) <= width:
        return text
    begin, end = width // 2, (width - 1) // 2
    head, tail = text[:begin], text[len(text) - end :]
    while cell_count(head) > begin:
        head = head[:-1]
    while cell_count(tail) > end:
        tail = tail[1:]
    return f"{head}…{tail}"


def cut(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis where it is wider than the given columns."""
    if cell_count(text) <= width:
        return text
    head = text[: width - 1]
    while cell_count(head) > width - 1:
        head = head[:-1]
    return f"{head.rstrip()}…"


def cell_count(text: str) -> int:
    """The columns that a text takes on a terminal: wide characters take two, marks on others none."""
    if text.isascii():
        return len(text)
    import unicodedata  # few names need it

    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) != 0 for letter in text)


def _padded(cell: str, width: int, is_number: bool) -> str:
    space = " " * (width - cell_count(cell))
    return space + cell if is_number else cell + space


def _kept(table: Table) -> list[int]:
    """The columns that say something."""
    silent = dict(table.silent)
    return [
        column
        for column in range(len(table.heads))
        if column == 0
        or not table.rows
        or not all(row[column] in (*EMPTY, *silent.get(column, ())) for row in table.rows)
    ]


def _shown(table: Table, width: int) -> Table:
    """Without columns that say nothing, and without spare ones where a line would not fit."""
    kept = _kept(table)
    shown = _with(table, kept)
    for spare in table.spare:
        if sum(_widths(shown, width)) + GAP * (len(kept) - 1) <= width:
            break
        kept = [column for column in kept if column != spare]
        shown = _with(table, kept)
    return shown


def _with(table: Table, kept: list[int]) -> Table:
    wide = table.wide % len(table.heads)
    return Table(
        tuple(table.heads[column] for column in kept),
        tuple(tuple(row[column] for column in kept) for row in table.rows),
        frozenset(at for at, column in enumerate(kept) if column in table.right),
        kept.index(wide) if wide in kept else len(kept) - 1,
    )


def _widths(table: Table, width: int) -> list[int]:
    """How wide each column is: as its widest value, less where the line would not fit."""
    found = [max(cell_count(row[column]) for row in (table.heads, *table.rows)) for column in range(len(table.heads))]
    wide = table.wide % len(table.heads)
    may = [at for at, head in enumerate(table.heads) if (at == wide or head in SHORTENED) and at not in table.right]
    while may and (over := sum(found) + GAP * (len(found) - 1) - width) > 0:
        widest = max(may, key=lambda at: found[at])
        least = max(LEAST, len(table.heads[widest]))
        if found[widest] <= least:
            break
        second = max((found[at] for at in may if at != widest), default=0)
        found[widest] = max(least, found[widest] - over, min(second, found[widest] - 1))
    return found


def _style(cell: str) -> str:
    word = cell.removesuffix("*")
    return COLOURS.get(State(word), BAD) if word in State.__members__ else ""
