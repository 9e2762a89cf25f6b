"""`params:` of a flow: named values with defaults, set at submission.

`{n}` is put in by the reader in keys that it must understand (`matrix`, `needs`, `cpus`, `time`, ...). Texts that the
job itself gets (`run`, `env`, `output`, ...) are filled when it starts, as those of a matrix are; the job keeps the
values of the names in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aver.errors import UsageError
from aver.plan.placeholders import AXIS_NAME, fill, names_in
from aver.spec.document import Entry, Scalar, Sequence, Value, resolve_plain
from aver.spec.document import Mapping as Map
from aver.spec.mistakes import did_you_mean, shown
from aver.spec.values import Reader

FILLED_AT_START = frozenset(
    {"run", "env", "folder", "stdin", "output", "error", "inputs", "outputs", "generates", "comment"}
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class ParamValues:
    """Values for a flow's parameters: `given` must be declared by the flow, `kept` are of an earlier reading of it."""

    __slots__ = ("given", "kept")

    def __init__(self, given: Mapping[str, str] = {}, kept: Mapping[str, str] = {}) -> None:
        self.given = given
        self.kept = kept


class Params:
    """The parameters of the flow that is read, and which of them it uses."""

    def __init__(self, values: Mapping[str, str] = {}) -> None:
        self.values = values
        self.used: set[str] = set()
        self._filled: dict[int, Value] = {}  # by the node that it was made of: an alias is filled once

    def of_job(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """The parameters among the names that a job's texts have, in the flow's order."""
        found = self.values.keys() & names if self.values else set()
        self.used |= found
        return tuple((name, self.values[name]) for name in self.values if name in found)

    def put_into(self, entry: Entry) -> Entry:
        """The entry with its values filled."""
        return Entry(entry.key, self._value(entry.value)) if self.values else entry

    def _value(self, value: Value) -> Value:
        known = self._filled.get(id(value))
        if known is None:
            known = self._filled[id(value)] = self._made(value)
        return known

    def _made(self, value: Value) -> Value:
        match value:
            case Scalar(value=str()):
                return self._scalar(value)
            case Scalar():
                return value
            case Sequence():
                return Sequence(value.line, value.column, tuple([self._value(item) for item in value.items]))
            case Map():
                entries = [Entry(self._scalar(one.key), self._value(one.value)) for one in value.entries.values()]
                return Map(value.line, value.column, {entry.key.text: entry for entry in entries})

    def _scalar(self, scalar: Scalar) -> Scalar:
        names = names_in(scalar.text) & self.values.keys()
        if not names:
            return scalar
        self.used |= names
        text = fill(scalar.text, self.values)
        return Scalar(scalar.line, scalar.column, text, resolve_plain(text) if text else text)

    def check_axes(self, place: Entry, names: Mapping[str, Entry], axes: Iterable[str], reader: Reader) -> None:
        """Note each axis that has the name of a parameter; `names` are where axes stand, `place` is where all do."""
        for name in axes:
            if name in self.values:
                at = names[name].key if name in names else place.key
                text = f"axis {shown(name)} in {reader.where} has the name of one of the flow's params"
                reader.mistakes.add(at, text, "rename one of them")

    def check_used(self, entry: Entry | None, reader: Reader) -> None:
        """Note each parameter that no job has a place for."""
        if entry is None or not isinstance(entry.value, Map):
            return
        for name in self.values:
            if name not in self.used:
                text = f"{shown(name)} in params is not used in any job"
                reader.mistakes.add(entry.value.entries[name].key, text, f"use {{{name}}} in run, env or output")


def read_params(entry: Entry | None, wanted: ParamValues, reader: Reader) -> Params:
    """The flow's parameters with the values that they have in this reading."""
    mapping = reader.mapping(entry) if entry is not None else None
    if entry is not None and mapping is None:
        return Params()
    reader = Reader(reader.mistakes, "params", reader.now)
    values: dict[str, str] = {}
    declared = mapping.entries if mapping is not None else {}
    for name, part in declared.items():
        if not AXIS_NAME.fullmatch(name):
            hint = "use letters, digits and _, and begin with a letter"
            reader.mistakes.add(part.key, f"{shown(name)} can't be the name of a param", hint)
            continue
        default = reader.text(part)
        value = wanted.given.get(name, wanted.kept.get(name, default))
        if default is None or value is None:
            continue
        if _CONTROL.search(default) or _CONTROL.search(value):
            reader.wrong(part, "has a control character")
        else:
            values[name] = value
    for name in wanted.given:
        if name not in declared:
            known = f"it has {', '.join(declared)}" if declared else f"declare it: params: {{{name}: DEFAULT}}"
            hint = did_you_mean(name, declared) or known
            place = entry.key if entry is not None else None
            reader.mistakes.add(place, f"--set {name}: the flow has no param of that name", hint)
    return Params(values)


def parse_settings(words: Iterable[str]) -> dict[str, str]:
    """The values of `--set NAME=VALUE`; raise UsageError for one that is none, and for a name that is set twice."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"--set {word}: write it as NAME=VALUE")
        if name in found:
            raise UsageError(f"--set {name} is given twice")
        found[name] = value
    return found
