"""`matrix:` of a job: axes, ranges, zip, include, exclude, max_parallel.

An axis without values is the flow's own of that name (`axes:`).
Values are kept as the text that was written. A range is `1..100`, `0..100..10` (step) or
`{from: 0, to: 100, step: 10}`, both ends included; leading zeros give the width, as in bash.
Members are not made here, only counted and checked; `plan.matrix` makes them. What the matrices of one file ask for is
summed while it is read (`Allowance`), before any of it is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from math import prod
from typing import TypeVar

from aver.model.job import Matrix
from aver.plan.matrix import Members
from aver.plan.placeholders import AXIS_NAME
from aver.spec.document import Entry, Mapping, Scalar, Sequence, Value
from aver.spec.files import Files
from aver.spec.flow.lists import CSV, LISTS, looks_like_files, read_list, read_table
from aver.spec.flow.params import Params
from aver.spec.mistakes import did_you_mean, shown
from aver.spec.values import Reader

MAX_MEMBERS = 1_000_000
MOST_COMPARED = 10_000_000
MAX_RULES = 1_000
MOST_HINTS = 1_000  # values of an axis among which the nearest is looked for
OPTIONS = ("zip", "include", "exclude", "max_parallel", "csv")
_RANGE = re.compile(r"([-+]?[0-9]{1,12})\.\.([-+]?[0-9]{1,12})(?:\.\.([-+]?[0-9]{1,12}))?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

Row = tuple[tuple[str, str], ...]
T = TypeVar("T")


class Allowance:
    """How many jobs and how many values of matrices a file may still have: one limit for each, over the whole file."""

    def __init__(self, most: int = MAX_MEMBERS, files: Files | None = None, params: Params | None = None) -> None:
        self.most = most
        self._jobs_left = most
        self._values_left = most
        self._matrices: dict[int, tuple[Matrix | None, int]] = {}  # by the node that it was read from
        self.axes: dict[str, tuple[str, ...]] = {}  # of the flow
        self.files = files  # None: no files are looked up
        self.params = params or Params()  # of the flow

    def matrix(self, entry: Entry, reader: Reader) -> Matrix | None:
        """Read a matrix, one that several jobs share once; None after noting its mistakes."""
        known = self._matrices.get(id(entry.value))
        if known is None:
            matrix = read_matrix(entry, reader, self)
            known = self._matrices[id(entry.value)] = (matrix, 0 if matrix is None else len(Members(matrix)))
        matrix, count = known
        if matrix is not None:
            self._jobs_left -= count - 1  # the job itself is counted too
        return matrix

    def count_job(self) -> None:
        self._jobs_left -= 1

    @property
    def is_used_up(self) -> bool:
        return self._jobs_left < 0 or self._values_left < 0

    def take_values(self, count: int) -> bool:
        """Whether so many values may be made; noted as used up if not."""
        self._values_left -= count
        return self._values_left >= 0

    @property
    def sentence(self) -> str:
        return f"the matrices of this file have more than {self.most} members or values together"


def read_matrix(entry: Entry, reader: Reader, allowance: Allowance) -> Matrix | None:
    """The matrix, or None after noting its mistakes, or with more than the file is allowed."""
    mapping = matrix_entries(entry, reader)
    if mapping is None:
        return None
    before = len(reader.mistakes)
    axes: dict[str, tuple[str, ...]] = {}
    for name, axis in mapping.entries.items():
        if name not in OPTIONS:
            values = _flow_axis(axis, reader, allowance) if is_empty(axis.value) else _axis(axis, reader, allowance)
            if allowance.is_used_up:
                return None
            if values:
                axes[name] = values
    is_zip = bool(reader.boolean(mapping.entries["zip"])) if "zip" in mapping.entries else False
    limit = reader.integer(mapping.entries["max_parallel"], 1) if "max_parallel" in mapping.entries else None
    if CSV in mapping.entries:
        axes, is_zip = _with_table(mapping.entries[CSV], axes, is_zip, reader, allowance), True
        if allowance.is_used_up:
            return None
    include = _rows(mapping.entries.get("include"), reader)
    exclude = _rows(mapping.entries.get("exclude"), reader)
    if len(reader.mistakes) > before:
        return None
    if not axes and include:
        axes, is_zip, include = _columns(mapping.entries["include"], include, reader), True, ()
    if len(reader.mistakes) > before:
        return None
    if not axes:
        reader.wrong(entry, "has no axis", "write it as matrix: {seed: [1, 2, 3]}")
        return None
    matrix = Matrix(tuple(axes.items()), is_zip, include, exclude, limit)
    allowance.params.check_axes(entry, mapping.entries, values_by_name(matrix), reader)
    _check(entry, mapping, matrix, reader, allowance.most)
    return matrix if len(reader.mistakes) == before else None


def read_axes(entry: Entry, reader: Reader, allowance: Allowance) -> None:
    """`axes:` of a flow: lists that its matrices may name."""
    mapping = reader.mapping(entry)
    if mapping is not None:
        allowance.params.check_axes(entry, mapping.entries, mapping.entries, reader)
    for name, axis in mapping.entries.items() if mapping else ():
        if name in OPTIONS:
            reader.mistakes.add(axis.key, f"{shown(name)} can't be the name of an axis in {reader.where}")
            continue
        values = _axis(axis, reader, allowance)
        if values and len(set(values)) < len(values):
            reader.wrong(axis, f"has the value {shown(_first_twice(values))} twice")
        elif values:
            allowance.axes[name] = values


def matrix_entries(entry: Entry, reader: Reader | None = None) -> Mapping | None:
    """The parts of a matrix: a map, or a list of axes of the flow."""
    value = entry.value
    if not isinstance(value, Sequence):
        return reader.mapping(entry) if reader is not None else value if isinstance(value, Mapping) else None
    entries: dict[str, Entry] = {}
    for item in value.items:
        if isinstance(item, Scalar) and item.value is not None:
            entries[item.text] = Entry(item, Scalar(item.line, item.column, "", None))
        elif reader is not None:
            hint = "write it as [sample] or {seed: [1, 2, 3]}"
            reader.wrong(Entry(entry.key, item), "must be a map, or a list of axes of the flow", hint)
    return Mapping(value.line, value.column, entries)


def is_empty(value: Value) -> bool:
    return isinstance(value, Scalar) and value.value is None


def _flow_axis(axis: Entry, reader: Reader, allowance: Allowance) -> tuple[str, ...] | None:
    """The values that the flow has for an axis."""
    name = axis.key.text
    values = allowance.axes.get(name)
    if values is None:
        hint = did_you_mean(name, allowance.axes) or f"give it values, here or in the flow's axes: {{{name}: [...]}}"
        reader.mistakes.add(axis.key, f"axis {shown(name)} in {reader.where} has no values", hint)
    return values


def values_by_name(matrix: Matrix) -> dict[str, set[str]]:
    """The values that each name of a matrix may have, axes first."""
    values = {name: set(texts) for name, texts in matrix.axes}
    for row in matrix.include:
        for name, value in row:
            values.setdefault(name, set()).add(value)
    return values


def _axis(axis: Entry, reader: Reader, allowance: Allowance) -> tuple[str, ...] | None:
    name = axis.key.text
    if not AXIS_NAME.fullmatch(name):
        hint = did_you_mean(name, OPTIONS) or "use letters, digits and _, and begin with a letter"
        reader.mistakes.add(axis.key, f"{shown(name)} can't be the name of an axis in {reader.where}", hint)
        return None
    value = axis.value
    if isinstance(value, Scalar) and (meant := _axis_meant(name, value.value, allowance)):
        of_text = f'for the text itself write {{list: ["{value.value}"]}}'
        hint = f"write {{{meant}}} for the values of the flow's axis; {of_text}"
        which = "its own name" if value.value == name else "the text"
        reader.wrong(axis, f"has {which} {shown(str(value.value))} as its value", hint)
        return None
    if isinstance(value, Mapping) and not value.entries.keys().isdisjoint(LISTS):
        return _checked(axis, read_list(axis, value, reader, allowance.files), reader, allowance)
    if isinstance(value, Mapping):
        return _range_map(axis, value, reader, allowance)
    texts: list[str] = []
    for item in value.items if isinstance(value, Sequence) else (value,):
        found = _texts(axis, item, reader, allowance)
        if found is None:
            return None
        texts += found
    if not texts:
        reader.wrong(axis, "has no values")
        return None
    return tuple(texts)


def _axis_meant(name: str, value: object, allowance: Allowance) -> str | None:
    """The flow's axis that a text such as `$sample` or `{sample}` seems to refer to; also the axis's own name."""
    if not isinstance(value, str):
        return None
    meant = value.strip("${}")
    return meant if meant in allowance.axes and (meant == name or meant != value) else None


def _texts(axis: Entry, item: Value, reader: Reader, allowance: Allowance) -> tuple[str, ...] | None:
    text = reader.text_of(axis, item)
    if text is None:
        return None
    at = Entry(axis.key, item)
    match = _RANGE.fullmatch(text)
    if match:
        return _range(at, match[1], match[2], match[3] or "", reader, allowance)
    if looks_like_files(text):
        hint = f'did you mean {{glob: "{text}"}}? for the text itself write {{list: ["{text}"]}}'
        reader.wrong(at, f"has the value {shown(text)}, which is not looked up", hint)
        return None
    return _checked(at, [text], reader, allowance)


def _checked(at: Entry, texts: list[str] | None, reader: Reader, allowance: Allowance) -> tuple[str, ...] | None:
    """The values, if they can be values and are not too many."""
    if texts is None:
        return None
    if any(map(_CONTROL.search, texts)):
        reader.wrong(at, "has a control character in a value")
        return None
    return tuple(texts) if allowance.take_values(len(texts)) else None


def _with_table(
    entry: Entry, axes: dict[str, tuple[str, ...]], is_zip: bool, reader: Reader, allowance: Allowance
) -> dict[str, tuple[str, ...]]:
    """The columns of a table and the other axes, zipped: each row with each combination of the others."""
    table = read_table(entry, reader, allowance.files)
    columns = {name: _checked(entry, list(values), reader, allowance) or () for name, values in table.items()}
    twice = sorted(axes.keys() & columns.keys())
    if twice:
        reader.wrong(entry, f"has the column {shown(twice[0])}, which is an axis too")
    if not axes or not columns or is_zip or twice or allowance.is_used_up:
        return columns | axes
    others = prod(map(len, axes.values()))
    count = len(next(iter(columns.values())))
    if not allowance.take_values(count * others * (len(axes) + len(columns))):
        return {}
    rows = list(product(*axes.values()))
    made = {name: tuple([value for value in values for _ in rows]) for name, values in columns.items()}
    return made | {name: tuple([row[at] for row in rows] * count) for at, name in enumerate(axes)}


def _range_map(axis: Entry, value: Mapping, reader: Reader, allowance: Allowance) -> tuple[str, ...] | None:
    parts = {"from": "", "to": "", "step": ""}
    for key, part in value.entries.items():
        if key not in parts:
            reader.unknown_key(part.key, parts)
            return None
        number = reader.integer(part, -(10**12), 10**12)
        if number is None:
            return None
        parts[key] = part.value.text if isinstance(part.value, Scalar) else str(number)
    if not (parts["from"] and parts["to"]):
        reader.wrong(axis, 'is a range without "from" or "to"', "write it as {from: 1, to: 100, step: 1}")
        return None
    return _range(axis, parts["from"], parts["to"], parts["step"], reader, allowance)


def _range(
    at: Entry, first: str, last: str, step_text: str, reader: Reader, allowance: Allowance
) -> tuple[str, ...] | None:
    start, end = int(first), int(last)
    step = int(step_text) if step_text else 1
    if step <= 0:
        reader.wrong(at, f"has the step {step}; a step is 1 or more")
        return None
    if end < start:
        reader.wrong(at, f"is a range from {start} down to {end}", f"write it as {end}..{start}")
        return None
    count = (end - start) // step + 1
    if count > allowance.most:
        reader.wrong(at, f"has more than {allowance.most} values")
        return None
    if not allowance.take_values(count):
        return None
    digits = [text.lstrip("+-") for text in (first, last)]
    padded = any(text[0] == "0" and len(text) > 1 for text in digits)
    width = max(map(len, digits)) if padded else 0
    return tuple([f"{number:0{width}d}" if width else str(number) for number in range(start, end + 1, step)])


def _rows(entry: Entry | None, reader: Reader) -> tuple[Row, ...]:
    """`include` or `exclude`: a list of maps."""
    if entry is None:
        return ()
    if not isinstance(entry.value, Sequence):
        reader.wrong(entry, "must be a list of maps", "write it as [{seed: 1}]")
        return ()
    if len(entry.value.items) > MAX_RULES:
        reader.wrong(entry, f"has more than {MAX_RULES} entries", "use zip, or a job that generates jobs")
        return ()
    rows: list[Row] = []
    for item in entry.value.items:
        if not isinstance(item, Mapping) or not item.entries:
            reader.wrong(Entry(entry.key, item), "must be a list of maps", "write it as [{seed: 1}]")
            continue
        row = []
        for name, cell in item.entries.items():
            text = reader.text(cell)
            if not AXIS_NAME.fullmatch(name) or name in OPTIONS:
                reader.mistakes.add(cell.key, f"{shown(name)} can't be the name of an axis in {reader.where}")
            elif text is not None and _CONTROL.search(text):
                reader.wrong(cell, "has a control character in a value")
            elif text is not None:
                row.append((name, text))
        rows.append(tuple(row))
    return tuple(rows)


def _columns(entry: Entry, rows: tuple[Row, ...], reader: Reader) -> dict[str, tuple[str, ...]]:
    """Axes from `include` alone: each entry is one member."""
    names = [name for name, _ in rows[0]]
    if any({name for name, _ in row} != set(names) for row in rows):
        reader.wrong(entry, "has entries with different names", "without axes, each entry names the same ones")
        return {}
    tables = [dict(row) for row in rows]
    return {name: tuple([table[name] for table in tables]) for name in names}


def _check(entry: Entry, mapping: Mapping, matrix: Matrix, reader: Reader, most: int) -> None:
    axes = dict(matrix.axes)
    lengths = {name: len(values) for name, values in matrix.axes}
    if matrix.zip:
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} has {count}" for name, count in lengths.items())
            reader.wrong(entry, f"zips axes of different lengths: {counts}")
            return
        rows = list(zip(*axes.values(), strict=True))
        if len(set(rows)) < len(rows):
            reader.wrong(entry, f"has the member {shown(','.join(_first_twice(rows)))} twice")
            return
    else:
        for name, values in matrix.axes:
            if len(set(values)) < len(values):
                reader.wrong(mapping.entries.get(name, entry), f"has the value {shown(_first_twice(values))} twice")
                return
        if prod(lengths.values()) > most:
            reader.wrong(entry, f"has {prod(lengths.values())} members; the most is {most}")
            return
    _check_exclude(mapping, axes, matrix, reader)
    if (matrix.include or matrix.exclude) and not _is_expandable(entry, mapping, axes, matrix, reader):
        return


def _first_twice(ones: Iterable[T]) -> T:
    """The first that was there before."""
    seen: set[T] = set()
    for one in ones:
        if one in seen:
            return one
        seen.add(one)
    raise ValueError("none is there twice")


def _check_exclude(mapping: Mapping, axes: dict[str, tuple[str, ...]], matrix: Matrix, reader: Reader) -> None:
    known = {
        name: frozenset(axes[name]) for name in {name for row in matrix.exclude for name, _ in row} if name in axes
    }
    for row in matrix.exclude:
        for name, value in row:
            entry = mapping.entries["exclude"]
            if name not in axes:
                reader.wrong(entry, f"names {shown(name)}, which is not an axis", did_you_mean(name, axes))
            elif value not in known[name]:
                hint = did_you_mean(value, axes[name]) if len(axes[name]) <= MOST_HINTS else ""
                reader.wrong(entry, f"names {shown(f'{name}={value}')}, which is not a value of that axis", hint)


def _is_expandable(
    entry: Entry, mapping: Mapping, axes: dict[str, tuple[str, ...]], matrix: Matrix, reader: Reader
) -> bool:
    try:
        members = Members(matrix)
    except ValueError as error:
        reader.wrong(entry, str(error), "leave such members out of the axes")
        return False
    if not len(members):
        reader.wrong(entry, "has no member left", 'look at "exclude"')
        return False
    names = set(axes).union(name for row in matrix.include for name, _ in row)
    extra = names - set(axes)
    look_at = members if extra else members[-len(matrix.include) :] if matrix.include else ()
    if len(look_at) * members.comparisons_per_member > MOST_COMPARED:
        hint = "let its entries name the same axes"
        reader.wrong(entry, "has entries of include that would have to be compared with too many members", hint)
        return False
    seen: set[str] = set()
    for member in look_at:
        missing = names - {name for name, _ in member.values}
        if missing:
            at = mapping.entries.get("include", entry)
            lacks = ", ".join(sorted(missing))
            reader.wrong(at, f"leaves the member {shown(member.label)} without {lacks}", "give every member each name")
            return False
        label = member.label
        if label in seen:
            reader.wrong(mapping.entries["include"], f"makes the member {shown(label)} twice")
            return False
        seen.add(label)
    return True
