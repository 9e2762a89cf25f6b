r"""Rows of CSV as RFC 4180 has them, but for `\n` at their ends.

The standard library's writer quotes only the ends of rows that it writes itself, and would leave a lone `\r` bare,
which readers take for the end of a row. So it writes `\r\n`, which is then cut.

A spreadsheet runs text that begins with `=`, `+`, `-` or `@` as a formula: such text gets a `'` before it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Written:
    """The row that was written last."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text[:-2] + "\n"


def csv_rows(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Each row as text; None is an empty cell."""
    written = _Written()
    writer = csv.writer(written)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
        yield written.text


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
