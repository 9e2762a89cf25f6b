"""The members of a matrix, and the order of a flow's jobs.

Pure. Jobs of a flow are numbered from 0: specs in their order, members of each spec in theirs.
A product varies its last axis fastest. As in GitHub Actions, `exclude` takes members away,
then each `include` adds its values to every member whose axes it does not contradict, and is
a member of its own when there is none. A spec without a matrix has one member without values.

Members are worked out when asked for: a matrix of 100,000 costs a few numbers, not dicts.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import compress, product
from math import prod
from typing import overload

from aver.model.job import FlowSpec, JobSpec, Matrix
from aver.model.record import Record

Values = tuple[tuple[str, str], ...]


class Member(Record):
    """One job of a spec: the value of each name, in the order of the axes."""

    values: Values = ()

    @property
    def label(self) -> str:
        """`[seed=2]`, or nothing without values."""
        return "[" + ",".join([f"{name}={value}" for name, value in self.values]) + "]" if self.values else ""


MOST_COMPARED = 10_000_000  # how often a rule may be compared with a member of a zip, in one matrix


class Members(Sequence[Member]):
    """The members of one matrix.

    Raises ValueError for zipped axes of different lengths, and for rules that are too much work to apply.
    """

    __slots__ = ("_added", "_axes", "_base", "_compared", "_extending", "_kept", "_places", "_zip")

    def __init__(self, matrix: Matrix) -> None:
        self._axes = matrix.axes
        self._zip = matrix.zip
        lengths = [len(values) for _, values in matrix.axes]
        if matrix.zip and len(set(lengths)) > 1:
            raise ValueError("the axes of a zip have different lengths")
        self._base = 0 if not lengths else lengths[0] if matrix.zip else prod(lengths)
        self._kept: array[int] | None = None
        self._extending: _Extensions | None = None
        self._added: tuple[Values, ...] = ()
        self._places: dict[str, dict[str, list[int]]] = {}  # by axis and value, while rules are applied
        self._compared = 0
        kept: bytes | None = None
        if matrix.exclude:
            excluded = self._union(matrix.exclude)
            kept = excluded.translate(_INVERTED)
            self._kept = array("q", compress(range(self._base), kept))
        if matrix.include:
            self._sort_includes(matrix, kept)
        self._places.clear()

    @property
    def comparisons_per_member(self) -> int:
        """How many lookups it takes to work out the values of one member."""
        return 0 if self._extending is None else len(self._extending.tables)

    def _sort_includes(self, matrix: Matrix, kept: bytes | None) -> None:
        axes = {name for name, _ in self._axes}
        extending: list[Values] = []
        added: list[Values] = []
        mask = None if kept is None else int.from_bytes(kept, "little")
        fitting: dict[Values, bool] = {}
        for entry in matrix.include:
            wanted = tuple((name, value) for name, value in entry if name in axes)
            if wanted not in fitting:
                found = self._fitting(wanted)
                fitting[wanted] = any(found) if mask is None else bool(int.from_bytes(found, "little") & mask)
            (extending if fitting[wanted] else added).append(entry)
        self._extending, self._added = _Extensions(axes, extending) if extending else None, tuple(added)

    def _union(self, rules: Sequence[Values]) -> bytes:
        """A byte for each member of the product or zip: 1 where one of the rules fits it."""
        found = 0
        for rule in dict.fromkeys(rules):
            found |= int.from_bytes(self._fitting(rule), "little")
        return found.to_bytes(self._base, "little")

    def _fitting(self, rule: Values) -> bytes:
        """A byte for each member of the product or zip: 1 where the rule fits it."""
        wanted = dict(rule)
        axes = {name for name, _ in self._axes}
        if not self._base or len(wanted) < len(set(rule)) or not axes.issuperset(wanted):
            return bytes(self._base)  # two values for one name, or a name that no member has
        return self._fitting_zip(wanted) if self._zip else self._fitting_product(wanted)

    def _fitting_product(self, wanted: Mapping[str, str]) -> bytes:
        pattern = b"\1"
        for name, values in reversed(self._axes):
            if name not in wanted:
                pattern *= len(values)
                continue
            row, width = bytearray(len(values) * len(pattern)), len(pattern)
            for place in self._places_of(name).get(wanted[name], ()):
                row[place * width : (place + 1) * width] = pattern
            pattern = bytes(row)
        return pattern

    def _fitting_zip(self, wanted: Mapping[str, str]) -> bytes:
        if not wanted:
            return b"\1" * self._base
        found = bytearray(self._base)
        values = dict(self._axes)
        candidates = min((self._places_of(name).get(value, []) for name, value in wanted.items()), key=len)
        self._compared += len(candidates)
        if self._compared > MOST_COMPARED:
            raise ValueError("its rules would have to be compared with too many members")
        for at in candidates:
            found[at] = all(values[name][at] == value for name, value in wanted.items())
        return bytes(found)

    def _places_of(self, axis: str) -> dict[str, list[int]]:
        known = self._places.get(axis)
        if known is None:
            known = self._places[axis] = {}
            for at, value in enumerate(dict(self._axes)[axis]):
                known.setdefault(value, []).append(at)
        return known

    def _values(self, at: int) -> Values:
        """The values of the product or zip alone."""
        if self._zip:
            return tuple([(name, values[at]) for name, values in self._axes])
        found = []
        for name, values in reversed(self._axes):
            at, place = divmod(at, len(values))
            found.append((name, values[place]))
        found.reverse()
        return tuple(found)

    def group(self, names: Sequence[str]) -> tuple[Sequence[int], list[tuple[str, ...]]]:
        """The members by their values of some names: a number for each member, and the values of each number.

        Every member must have each of the names. A number may have no member.
        """
        axes = dict(self._axes)
        if self._extending is not None or self._added or not axes.keys() >= set(names):
            return _group([tuple([dict(member.values)[name] for name in names]) for member in self])
        if self._zip:
            numbers, keys = _group(zip(*[axes[name] for name in names], strict=True) if names else [()] * self._base)
        else:
            numbers, keys = self._group_product(names)
        return (numbers if self._kept is None else array("q", map(numbers.__getitem__, self._kept))), keys

    def _group_product(self, names: Sequence[str]) -> tuple[Sequence[int], list[tuple[str, ...]]]:
        numbers, count = array("q", [0]), 1
        for name, values in reversed(self._axes):
            if name in names:
                numbers = array("q", [place * count + one for place in range(len(values)) for one in numbers])
                count *= len(values)
            else:
                numbers = numbers * len(values)
        chosen = [(name, values) for name, values in self._axes if name in names]
        order = [[name for name, _ in chosen].index(name) for name in names]
        keys = product(*[values for _, values in chosen])
        return numbers, [tuple([key[at] for at in order]) for key in keys]

    def __len__(self) -> int:
        return (self._base if self._kept is None else len(self._kept)) + len(self._added)

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Member]: ...
    def __getitem__(self, index: int | slice) -> Member | Sequence[Member]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"member {index} of {count}")
        index %= count
        first_added = count - len(self._added)
        if index >= first_added:
            return Member(self._added[index - first_added])
        values = self._values(index if self._kept is None else self._kept[index])
        return Member(values if self._extending is None else self._extending.extend(values))

    def __iter__(self) -> Iterator[Member]:
        return (self[at] for at in range(len(self)))


class _Extensions:
    """The entries of `include` that add to members, found by the values that they ask for."""

    __slots__ = ("tables",)

    def __init__(self, axes: Set[str], entries: Sequence[Values]) -> None:
        self.tables: dict[tuple[str, ...], dict[tuple[str, ...], list[tuple[int, Values]]]] = {}
        for order, entry in enumerate(entries):
            wanted = {name: value for name, value in entry if name in axes}
            names = tuple(sorted(wanted))
            table = self.tables.setdefault(names, {})
            table.setdefault(tuple(wanted[name] for name in names), []).append((order, entry))

    def extend(self, values: Values) -> Values:
        """The member's values and those that the entries add, the last of them first to be believed."""
        base = dict(values)
        found: list[tuple[int, Values]] = []
        for names, table in self.tables.items():
            found += table.get(tuple([base[name] for name in names]), ())
        for _, entry in sorted(found):
            base.update(entry)
        return tuple(base.items())


def _group(rows: Iterable[tuple[str, ...]]) -> tuple[Sequence[int], list[tuple[str, ...]]]:
    known: dict[tuple[str, ...], int] = {}
    return array("q", [known.setdefault(row, len(known)) for row in rows]), list(known)


_INVERTED = bytes([1, *bytes(255)])
_ONE: Sequence[Member] = (Member(),)


def members(spec: JobSpec) -> Sequence[Member]:
    """All members of a spec. Keep the result when asking for many: making it may cost a walk over the matrix."""
    return _ONE if spec.matrix is None else Members(spec.matrix)


def declared_names(spec: JobSpec) -> dict[str, None]:
    """The names whose values the members of a spec have, axes first."""
    if spec.matrix is None:
        return {}
    names = dict.fromkeys(name for name, _ in spec.matrix.axes)
    return names | dict.fromkeys(name for row in spec.matrix.include for name, _ in row)


def member_count(spec: JobSpec) -> int:
    return len(members(spec))


def member_at(spec: JobSpec, index: int) -> Member:
    """Raise IndexError when there is none."""
    return members(spec)[index]


def values_of(spec: JobSpec, index: int) -> Values:
    """What a member's texts are filled with: its own values, and params. Raise IndexError when there is none."""
    return member_at(spec, index).values + spec.params


class FlowIndex:
    """Which spec and member the n-th job of a flow is, and back."""

    __slots__ = ("_members", "_specs", "_starts", "count", "flow")

    def __init__(self, flow: FlowSpec) -> None:
        self.flow = flow
        self._members = [members(spec) for spec in flow.jobs]
        self._starts: list[int] = []
        self._specs: list[JobSpec] = []  # of each job: asked for more often than anything else
        self.count = 0
        for spec, one in zip(flow.jobs, self._members, strict=True):
            self._starts.append(self.count)
            self.count += len(one)
            self._specs += [spec] * len(one)

    def locate(self, job: int) -> tuple[int, int]:
        """Return (spec index, member index) of the n-th job; raise IndexError when there is none."""
        if not 0 <= job < self.count:
            raise IndexError(f"job {job} of {self.count}")
        spec = bisect_right(self._starts, job) - 1
        return spec, job - self._starts[spec]

    def job(self, spec: int, member: int = 0) -> int:
        """Return the number of a spec's member; raise IndexError when there is none."""
        if not 0 <= member < len(self._members[spec]):
            raise IndexError(f"member {member} of {len(self._members[spec])}")
        return self._starts[spec] + member

    def jobs_of(self, spec: int) -> range:
        start = self._starts[spec]
        return range(start, start + len(self._members[spec]))

    def spec(self, job: int) -> JobSpec:
        """Raise IndexError when there is none."""
        if job < 0:
            raise IndexError(f"job {job} of {self.count}")
        return self._specs[job]

    def member(self, job: int) -> Member:
        spec, member = self.locate(job)
        return self._members[spec][member]

    def name(self, job: int) -> str:
        spec, member = self.locate(job)
        return self.flow.jobs[spec].name + self._members[spec][member].label

    def names(self) -> Iterator[str]:
        """The names of all jobs in their order."""
        for spec, its_members in zip(self.flow.jobs, self._members, strict=True):
            for member in its_members:
                yield spec.name + member.label
