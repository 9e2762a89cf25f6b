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
from collections.abc import Iterator, Sequence
from math import prod
from typing import overload

from aver.core.model import FlowSpec, JobSpec, Matrix
from aver.core.record import dataclass

Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One job of a spec: the value of each name, in the order of the axes."""

    values: Values = ()

    @property
    def label(self) -> str:
        """`[seed=2]`, or nothing without values."""
        return "[" + ",".join([f"{name}={value}" for name, value in self.values]) + "]" if self.values else ""


class Members(Sequence[Member]):
    """The members of one matrix. Raises ValueError for zipped axes of different lengths."""

    __slots__ = ("_added", "_axes", "_base", "_extending", "_kept", "_zip")

    def __init__(self, matrix: Matrix) -> None:
        self._axes = matrix.axes
        self._zip = matrix.zip
        lengths = [len(values) for _, values in matrix.axes]
        if matrix.zip and len(set(lengths)) > 1:
            raise ValueError("the axes of a zip have different lengths")
        self._base = 0 if not lengths else lengths[0] if matrix.zip else prod(lengths)
        self._kept: array[int] | None = None
        self._extending: tuple[Values, ...] = ()
        self._added: tuple[Values, ...] = ()
        if matrix.exclude:
            excluded = [frozenset(entry) for entry in matrix.exclude]
            self._kept = array(
                "q", (at for at in range(self._base) if not any(one.issubset(self._values(at)) for one in excluded))
            )
        if matrix.include:
            self._sort_includes(matrix)

    def _sort_includes(self, matrix: Matrix) -> None:
        axes = {name for name, _ in self._axes}
        extending: list[Values] = []
        added: list[Values] = []
        for entry in matrix.include:
            wanted = frozenset((name, value) for name, value in entry if name in axes)
            indexes = range(self._base) if self._kept is None else self._kept
            fits = any(wanted.issubset(self._values(at)) for at in indexes)
            (extending if fits else added).append(entry)
        self._extending, self._added = tuple(extending), tuple(added)

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
        return Member(self._extend(values) if self._extending else values)

    def _extend(self, values: Values) -> Values:
        base = dict(values)
        result = dict(base)
        for entry in self._extending:
            if all(base.get(name, value) == value for name, value in entry):
                result.update(entry)
        return tuple(result.items())

    def __iter__(self) -> Iterator[Member]:
        return (self[at] for at in range(len(self)))


_ONE: Sequence[Member] = (Member(),)


def members(spec: JobSpec) -> Sequence[Member]:
    """All members of a spec. Keep the result when asking for many: making it may cost a walk over the matrix."""
    return _ONE if spec.matrix is None else Members(spec.matrix)


def member_count(spec: JobSpec) -> int:
    return len(members(spec))


def member_at(spec: JobSpec, index: int) -> Member:
    """Raise IndexError when there is none."""
    return members(spec)[index]


def member_name(spec: JobSpec, index: int) -> str:
    """`train[seed=2]`, or `train` without a matrix."""
    return spec.name + member_at(spec, index).label


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


def job_name(flow: FlowSpec, job: int) -> str:
    """The name of the n-th job. For many names make one FlowIndex."""
    return FlowIndex(flow).name(job)
