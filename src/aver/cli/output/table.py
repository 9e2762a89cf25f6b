"""Tables: aligned plain text in pipes and files, drawn with colours on a terminal.

Plain tables have stable columns, no colours and no box characters, and never cut a value; rich is
imported only when a table is drawn on a terminal.
"""

from __future__ import annotations

from aver.cli.output.text import COLOURS, Output
from aver.model.record import Record
from aver.model.states import State
from aver.printable import one_line, printable

FOLDED = 16  # columns that a folded value needs at least


class Table(Record):
    """`right` are the columns that hold numbers; `wide` is the column that may be folded on a terminal."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    wide: int = -1


def show_table(output: Output, table: Table) -> None:
    """Write the table, drawn on a terminal and plain elsewhere."""
    if output.out_is_terminal and fits(table, output.width):
        output.raw(draw(table, output).encode("utf-8", "surrogateescape"))
        return
    output.line("\n".join(plain(table)))


def fits(table: Table, width: int) -> bool:
    """Whether only the column that may be folded has to be: on a narrower terminal a drawn value would be cut."""
    wide = table.wide % len(table.heads)
    columns = [[printable(row[column]) for row in table.rows] for column in range(len(table.heads))]
    needed = [max(len(head), *map(len, cells)) for head, cells in zip(table.heads, columns, strict=True)]
    needed[wide] = min(needed[wide], FOLDED)
    return sum(needed) + 2 * len(needed) <= width


def plain(table: Table) -> list[str]:
    """Return the lines of the table, each column as wide as its widest value, two spaces between."""
    cells = [table.heads, *(tuple(one_line(cell) for cell in row) for row in table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.heads))]
    return [
        "  ".join(
            cell.rjust(width) if column in table.right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def draw(table: Table, output: Output) -> str:
    """Return the table as rich draws it for this terminal."""
    import io

    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, head in enumerate(table.heads):
        is_wide = column == table.wide % len(table.heads)
        drawn.add_column(
            head,
            justify="right" if column in table.right else "left",
            no_wrap=not is_wide,
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(Text(output.masking.whole(printable(cell)), style=_style(cell)) for cell in row))
    buffer = io.StringIO()
    Console(file=buffer, force_terminal=output.has_colours, no_color=not output.has_colours, width=output.width).print(
        drawn
    )
    return buffer.getvalue()


_RICH = {"32": "green", "34": "blue", "2": "dim", "33": "yellow", "36": "cyan", "35": "magenta", "31": "red"}


def _style(cell: str) -> str:
    word = cell.removesuffix("*")
    return _RICH[COLOURS.get(State(word), "31")] if word in State.__members__ else ""
