"""What the texts in `needs` mean, and everything that is wrong with them.

A need is a job's name (with a matrix: all its members), an address (`train[seed=2]`; axes that
it leaves out may have any value) or a glob (`train*`, `train[seed=*]`; only `*` and `?` are
special). With a name of the needing job's own matrix in it (`prep[sample={sample}]`) each member
has its own need: the members of `prep` with its sample. `prep[same]` is short for that with all
axes that both jobs have. Pure.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain

from aver.model.job import JobSpec, Needs
from aver.model.record import Record
from aver.model.suggestion import did_you_mean, shown
from aver.plan.address import Address, NameIndex, address_text, glob_pattern, is_glob, parse_address
from aver.plan.lanes import Key, Lanes, Link
from aver.plan.matrix import Member, Members, declared_names
from aver.plan.placeholders import fill, names_in

MOST_COMPARED = 10_000_000  # how often a pattern may be compared with a name, in one flow
_HINTS = 20  # looking for the nearest name costs a walk over all names


class Target(Record):
    """The jobs that a need means: whole specs, and some jobs of other specs. The same jobs are the same Target."""

    specs: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()


class Problem(Record):
    """What is wrong with a spec, or with one of its needs, as written; empty: with the spec as a whole."""

    spec: int
    need: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.text}; {self.hint}" if self.hint else self.text


class TooManyComparisons(ValueError):
    """The patterns in the needs of a flow are too much work."""


def texts_of(needs: Needs) -> Iterator[str]:
    """What the needs name, as written: all of `all_of`, then each group of `any_of`."""
    for need in needs.all_of:
        yield need.job
    for group in needs.any_of:
        for need in group:
            yield need.job


def own_names(text: str, spec: JobSpec) -> frozenset[str]:
    """The names of the spec's own matrix that stand in one of its needs."""
    return names_in(text) & declared_names(spec).keys() if "{" in text else frozenset()


def is_member_wise(text: str, spec: JobSpec) -> bool:
    """Whether the need is another one for each member."""
    return text.endswith("[same]") or bool(own_names(text, spec))


class _Grouped:
    """The members of a spec by their values of some axes."""

    __slots__ = ("_by_text", "jobs", "values")

    def __init__(self, members: Members, start: int, names: tuple[str, ...]) -> None:
        numbers, keys = members.group(names)
        by_number: list[list[int]] = [[] for _ in keys]
        for job, number in enumerate(numbers, start):
            by_number[number].append(job)
        self.jobs: dict[Key, list[int]] = {key: jobs for key, jobs in zip(keys, by_number, strict=True) if jobs}
        self._by_text: dict[str, list[int]] = {}
        self.values = [set(column) for column in zip(*self.jobs, strict=True)] or [set() for _ in names]

    @property
    def by_text(self) -> dict[str, list[int]]:
        """The same by one text for each key, to be compared with a pattern."""
        if not self._by_text:
            self._by_text = {_joined_key(key): jobs for key, jobs in self.jobs.items()}
        return self._by_text


def _lane_key(name: str, key: Key) -> Key:
    return (name, *key) if name else key


def _keys(name: str, keys: list[Key]) -> list[Key]:
    return [(name, *key) for key in keys] if name else keys


def _joined_key(key: Key) -> str:
    return "\n".join(key)  # no value has a newline


class Resolver:
    """What texts mean, while the graph does not change. `problems` has what is wrong."""

    def __init__(
        self,
        specs: Sequence[JobSpec],
        starts: Sequence[int],
        members: Sequence[Sequence[Member]],
        by_name: dict[str, int],
    ) -> None:
        self.problems: list[Problem] = []
        self._specs = specs
        self._starts = starts
        self._members = members
        self._by_name = by_name
        self._names: NameIndex | None = None
        self._targets: dict[str, Target | None] = {}
        self._globs: dict[str, list[int]] = {}
        self._grouped: dict[tuple[int, tuple[str, ...]], _Grouped] = {}
        self._labels: dict[int, dict[str, int]] = {}
        self._lanes: dict[tuple[object, ...], tuple[Lanes, dict[Key, int]]] = {}
        self._compared = 0

    def resolve(self, at: int, text: str) -> Target | Link | None:
        """What the text means in the needs of a spec; None after noting what is wrong."""
        spec = self._specs[at]
        if is_member_wise(text, spec):
            return self._link(at, text)
        if text not in self._targets:
            self._targets[text] = self._target(at, text)
        return self._targets[text]

    def _wrong(self, at: int, need: str, text: str, hint: str = "") -> None:
        self.problems.append(Problem(at, need, f"job {shown(self._specs[at].name)} {text}", hint))

    def _address(self, at: int, text: str) -> Address | None:
        try:
            return parse_address(text)
        except ValueError as error:
            self._wrong(at, text, f"has a need that is wrong: {error}")
            return None

    def _named(self, at: int, name: str, need: str) -> list[int]:
        """The specs that a name or a glob means; none, and it is noted, if there are none."""
        if name in self._by_name:
            return [self._by_name[name]]
        if not is_glob(name):
            hint = did_you_mean(name, self._by_name) if len(self.problems) < _HINTS else ""
            self._wrong(at, need, f"needs {shown(name)}, but this flow has no such job", hint)
            return []
        found = self._globs.get(name)
        if found is None:
            self._compare(len(self._by_name))
            self._names = self._names or NameIndex(self._by_name)
            found = self._globs[name] = [self._by_name[match] for match in self._names.matching(name)]
        if not found:
            self._wrong(at, need, f"needs {shown(need)}, which matches no job", "look at the names of the jobs")
        return found

    def _compare(self, count: int) -> None:
        self._compared += count
        if self._compared > MOST_COMPARED:
            raise TooManyComparisons

    # A need that is the same for all members

    def _target(self, at: int, text: str) -> Target | None:
        address = self._address(at, text)
        if address is None:
            return None
        specs = self._named(at, address.name, text)
        if not address.values:
            return Target(tuple(specs)) if specs else None
        target = self._some(specs, [self._fitting(spec, address) for spec in specs])
        if target is None and specs and not address.is_glob:
            self._note_no_member(at, text, specs[0])
        elif target is None and specs:
            hint = "look at the matrices of the jobs"
            self._wrong(at, text, f"needs {shown(text)}, which matches no member", hint)
        return target

    def _some(self, specs: list[int], found: list[list[int]]) -> Target | None:
        whole = [
            spec for spec, jobs in zip(specs, found, strict=True) if jobs and len(jobs) == len(self._members[spec])
        ]
        some = [job for spec, jobs in zip(specs, found, strict=True) if spec not in whole for job in jobs]
        return Target(tuple(whole), tuple(some)) if whole or some else None

    def _fitting(self, spec: int, address: Address) -> list[int]:
        """The jobs of a spec that have the values of an address."""
        names = tuple(name for name, _ in address.values)
        if not declared_names(self._specs[spec]).keys() >= set(names):
            return self._labelled(spec, address)
        grouped = self._group(spec, names)
        wanted = tuple(value for _, value in address.values)
        if wanted in grouped.jobs:
            return grouped.jobs[wanted]
        if not any(map(is_glob, wanted)):
            return self._labelled(spec, address)
        self._compare(len(grouped.jobs))
        fits = glob_pattern(_joined_key(wanted)).fullmatch
        return sorted(chain.from_iterable(jobs for text, jobs in grouped.by_text.items() if fits(text)))

    def _labelled(self, spec: int, address: Address) -> list[int]:
        """A job by its whole label, whose values may look like further axes."""
        members = self._members[spec]
        if not isinstance(members, Members):
            return []
        labels = self._labels.get(spec)
        if labels is None:
            labels = self._labels[spec] = {one.label: job for job, one in enumerate(members, self._starts[spec])}
        label = "[" + ",".join(f"{name}={value}" for name, value in address.values) + "]"
        return [labels[label]] if label in labels else []

    def _group(self, spec: int, names: tuple[str, ...]) -> _Grouped:
        known = self._grouped.get((spec, names))
        if known is None:
            members = self._members[spec]
            assert isinstance(members, Members)
            known = self._grouped[spec, names] = _Grouped(members, self._starts[spec], names)
        return known

    def _note_no_member(self, at: int, text: str, spec: int) -> None:
        """Say why an address of one job means no member."""
        values = parse_address(text).values
        if not self._has_axes(at, text, spec, [axis for axis, _ in values]):
            return
        is_said = False
        for axis, value in values:
            (known,) = self._group(spec, (axis,)).values
            if value not in known and not any(map(glob_pattern(value).fullmatch, known)):
                is_said = True
                hint = did_you_mean(value, known)
                if names_in(value):
                    hint = f"job {shown(self._specs[at].name)} has no axis {min(names_in(value))}"
                self._wrong(at, text, f"needs {shown(text)}, but {shown(value)} is not a value of {axis}", hint)
        if not is_said:
            self._wrong(at, text, f"needs {shown(text)}, but there is no such member", "look at its matrix")

    def _has_axes(self, at: int, text: str, spec: int, axes: Sequence[str]) -> bool:
        """Whether a spec has the axes; what it lacks is noted."""
        target, said = self._specs[spec], f"needs {shown(text)}"
        if target.matrix is None:
            self._wrong(at, text, f"{said}, but {shown(target.name)} has no matrix", f"write {target.name}")
            return False
        declared = declared_names(target)
        missing = [axis for axis in axes if axis not in declared]
        for axis in missing:
            hint = did_you_mean(axis, declared) or f"it has {', '.join(declared)}"
            self._wrong(at, text, f"{said}, but its matrix has no {shown(axis)}", hint)
        return not missing

    # A need that each member has for itself

    def _link(self, at: int, text: str) -> Link | None:
        address = self._address(at, text)
        if address is None:
            return None
        own = declared_names(self._specs[at])
        if names_in(address.name) & own.keys():
            return self._link_by_name(at, text, address)
        specs = self._named(at, address.name, text)
        if not specs:
            return None
        values = address.values
        if address.is_same:
            shared = [name for name in own if all(name in declared_names(self._specs[spec]) for spec in specs)]
            if not shared:
                hint = f"write {address.name}, or give both jobs the axis"
                self._wrong(at, text, f"needs {shown(text)}, but they have no axis in common", hint)
                return None
            values = tuple((name, f"{{{name}}}") for name in shared)
        axes = [axis for axis, _ in values]
        if address.is_glob:
            specs = [spec for spec in specs if declared_names(self._specs[spec]).keys() >= set(axes)]
            if not specs:
                self._wrong(
                    at, text, f"needs {shown(text)}, which matches no member", "look at the matrices of the jobs"
                )
                return None
        elif not self._has_axes(at, text, specs[0], axes):
            return None
        return self._joined(at, text, [(spec, "") for spec in specs], Address(address.name, values))

    def _link_by_name(self, at: int, text: str, address: Address) -> Link | None:
        """The members need jobs of different names: `prep-{sample}`."""
        own = sorted(names_in(address.name) & declared_names(self._specs[at]).keys())
        _, keys = self._own_group(at, own)
        named: list[tuple[int, str]] = []
        for key in keys:
            name = fill(address.name, dict(zip(own, key, strict=True)))
            for spec in self._named(at, name, text):
                if not address.values or self._has_axes(at, text, spec, [axis for axis, _ in address.values]):
                    named.append((spec, name))
        if {name for _, name in named} != {fill(address.name, dict(zip(own, key, strict=True))) for key in keys}:
            return None
        return self._joined(at, text, named, address)

    def _own_group(self, at: int, names: Sequence[str]) -> tuple[Sequence[int], list[Key]]:
        members = self._members[at]
        assert isinstance(members, Members)
        return members.group(names)

    def _lanes_of(
        self, named: list[tuple[int, str]], at: int, values: tuple[tuple[str, str], ...]
    ) -> tuple[Lanes, dict[Key, int]]:
        """The members of specs by the values that differ between the members of the needing spec."""
        spec = self._specs[at]
        axes = tuple(axis for axis, value in values if own_names(value, spec))
        fixed = tuple((axis, value) for axis, value in values if not own_names(value, spec))
        known = self._lanes.get((tuple(named), axes, fixed))
        if known is not None:
            return known
        lanes, index = self._lanes[tuple(named), axes, fixed] = Lanes(), {}
        pattern = glob_pattern(_joined_key(tuple(value for _, value in fixed)))

        def fits(key: Key) -> bool:
            return pattern.fullmatch(_joined_key(key[len(axes) :])) is not None

        for target, name in dict.fromkeys(named):
            members = self._members[target]
            if not isinstance(members, Members):
                lanes.add(target, [0], [_lane_key(name, ())], index)
                continue
            numbers, keys = members.group((*axes, *(axis for axis, _ in fixed)))
            self._compare(len(keys) * len(fixed))
            lanes.add(
                target,
                numbers,
                [_lane_key(name, key[: len(axes)]) if fits(key) else None for key in keys]
                if fixed
                else _keys(name, keys),
                index,
            )
        return lanes, index

    def _joined(self, at: int, text: str, named: list[tuple[int, str]], address: Address) -> Link | None:
        """The lane of each member of the needing spec; noted, if one has none."""
        spec, values = self._specs[at], address.values
        lanes, index = self._lanes_of(named, at, values)
        name = address.name if own_names(address.name, spec) else ""
        texts = [value for _, value in values if own_names(value, spec)]
        own = list(dict.fromkeys(one for text in (name, *texts) for one in sorted(own_names(text, spec))))
        numbers, keys = self._own_group(at, own)
        if not name and texts == [f"{{{axis}}}" for axis in own]:
            wanted = keys
        else:
            every = [dict(zip(own, key, strict=True)) for key in keys]
            wanted = [_lane_key(fill(name, its), tuple([fill(value, its) for value in texts])) for its in every]
        lane_of = array("q", [index.get(key, -1) for key in wanted])
        of_member = array("q", map(lane_of.__getitem__, numbers))
        if -1 in of_member:
            lost = {number for number in numbers if lane_of[number] < 0}
            first = ",".join(f"{axis}={value}" for axis, value in zip(own, keys[min(lost)], strict=True))
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            hint = "look at both matrices"
            self._wrong(at, text, f"needs {shown(text)}, which matches no member for {shown(first)}{more}", hint)
            return None
        return Link(address_text(address), lanes, of_member)
