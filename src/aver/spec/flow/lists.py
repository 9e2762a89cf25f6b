"""Values of a matrix that come from files: names that match, lines, columns of a table.

f: {glob: "data/*.csv"}          each file that matches; also a list of patterns
id: {lines: ids.txt}             each line that is not empty
x: {list: ["*.csv"]}             these texts, whatever they look like
csv: table.csv                   the columns of a table are axes, and its rows are members
"""

from __future__ import annotations

import csv
import io
import re

from aver.plan.placeholders import AXIS_NAME
from aver.spec.document import Entry, Mapping
from aver.spec.files import Files
from aver.spec.mistakes import did_you_mean, shown
from aver.spec.values import Reader

LISTS = ("glob", "lines", "list")
CSV = "csv"
_PATTERN = re.compile(r"[^*?]*[*?].*", re.DOTALL)


def looks_like_files(text: str) -> bool:
    """Whether a value was meant as a pattern of file names: `*.csv`, `data/*`."""
    return _PATTERN.fullmatch(text) is not None and ("." in text or "/" in text)


def read_list(axis: Entry, value: Mapping, reader: Reader, files: Files | None) -> list[str] | None:
    """The values of an axis that is a map with one of LISTS; None after noting what is wrong."""
    if len(value.entries) != 1:
        reader.wrong(axis, f"must have one of {', '.join(LISTS)} and nothing else")
        return None
    ((kind, part),) = value.entries.items()
    texts = reader.texts(Entry(axis.key, part.value))
    if texts is None or kind == "list":
        return None if texts is None else list(texts)
    found: list[str] = []
    for text in texts:
        some = _matching(axis, text, reader, files) if kind == "glob" else _lines(axis, text, reader, files)
        if some is None:
            return None
        found += some
    return list(dict.fromkeys(found)) if kind == "glob" else found


def read_table(entry: Entry, reader: Reader, files: Files | None) -> dict[str, tuple[str, ...]]:
    """The columns of a table by their names; none after noting what is wrong."""
    path = reader.filled(entry)
    text = None if path is None else _text(entry, path, reader, files)
    if text is None:
        return {}
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        reader.wrong(entry, f"can't be read: {error}")
        return {}
    if len(rows) < 2:
        reader.wrong(entry, f"has no rows in {shown(path or '')}", "the first line has the names of its columns")
        return {}
    names = [name.strip() for name in rows[0]]
    wrong = [name for name in names if not AXIS_NAME.fullmatch(name)]
    if wrong or len(set(names)) < len(names):
        said = f"the column {shown(wrong[0])}" if wrong else "a column twice"
        hint = "names of columns have letters, digits and _, and begin with a letter"
        reader.wrong(entry, f"has {said} in {shown(path or '')}", hint)
        return {}
    odd = next((number for number, row in enumerate(rows, 1) if len(row) != len(names)), None)
    if odd is not None:
        reader.wrong(entry, f"has {len(rows[odd - 1])} values in row {odd} of {shown(path or '')}, not {len(names)}")
        return {}
    return {name: tuple([row[at] for row in rows[1:]]) for at, name in enumerate(names)}


def _matching(axis: Entry, pattern: str, reader: Reader, files: Files | None) -> list[str] | None:
    if files is None:
        _no_files(axis, reader)
        return None
    found = files.matching(pattern)
    if not found:
        reader.wrong(axis, f"has no values: {shown(pattern)} matches nothing in {files.folder}")
        return None
    return found


def _lines(axis: Entry, path: str, reader: Reader, files: Files | None) -> list[str] | None:
    text = _text(axis, path, reader, files)
    if text is None:
        return None
    found = [line for line in re.split(r"\r?\n", text) if line.strip()]
    if not found:
        reader.wrong(axis, f"has no values: {shown(path)} has no lines")
        return None
    return found


def _text(entry: Entry, path: str, reader: Reader, files: Files | None) -> str | None:
    if files is None:
        _no_files(entry, reader)
        return None
    try:
        return files.text(path)
    except FileNotFoundError:
        near = did_you_mean(path, files.matching("*"))
        reader.wrong(entry, f"can't be read: {shown(path)} is not in {files.folder}", near)
    except OSError as error:
        reader.wrong(entry, f"can't be read: {shown(path)}: {error.strerror}")
    except ValueError as error:
        reader.wrong(entry, f"can't be read: {shown(path)}: {error}")
    return None


def _no_files(entry: Entry, reader: Reader) -> None:
    reader.wrong(entry, "can't look at files here", "write the values themselves")
