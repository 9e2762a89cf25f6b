"""Which job needs which: names resolved, mistakes found, order known.

Pure. All members of a spec have the same needs, so the graph is kept between specs: a matrix
of 100,000 that needs a matrix of 100,000 is one edge. Jobs are numbered in order of expansion;
a flow that is added later goes on where the last one ended.

A need is a job's name (with a matrix: all its members), an address (`train[seed=2]`; axes that
it leaves out may have any value) or a glob (`train*`, `train[seed=*]`; only `*` and `?` are
special). A glob means the jobs that are known when its own job is added; it never grows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from aver.model.job import FlowSpec, JobSpec, Needs
from aver.model.record import Record
from aver.plan.address import glob_pattern
from aver.plan.matrix import Member, members

MAX_CYCLES = 20
_HINTS = 20  # looking for the nearest name costs a walk over all names


class Target(Record):
    """The jobs that a need means: whole specs, and some jobs of other specs. The same jobs are the same Target."""

    specs: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()


class Duplicate(Record):
    spec: int
    name: str

    def __str__(self) -> str:
        return f"the job name {self.name} is used twice"


class UnknownNeed(Record):
    spec: int
    name: str
    need: str
    nearest: str | None

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.name} needs {self.need}, which is no job of this run{hint}"


class SelfNeed(Record):
    spec: int
    name: str
    need: str

    def __str__(self) -> str:
        through = f" (through {self.need})" if self.need != self.name else ""
        return f"{self.name} needs itself{through}"


class Cycle(Record):
    """`path` starts and ends with the same name; each needs the next."""

    spec: int
    path: tuple[str, ...]

    def __str__(self) -> str:
        return "these jobs need each other in a circle: " + " -> ".join(self.path)


Problem = Duplicate | UnknownNeed | SelfNeed | Cycle


class GraphError(ValueError):
    """A flow that can't be planned, with all its problems; its text is one sentence each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in problems))


class Graph:
    """The specs of a run, in order, and what each needs. Only grows, and only by whole flows without problems."""

    def __init__(self, flow: FlowSpec) -> None:
        """Raise GraphError with every problem of the flow."""
        self.specs: list[JobSpec] = []
        self.starts: list[int] = []
        self.above: list[tuple[int, ...]] = []  # the specs that each spec needs
        self.order: list[int] = []  # specs, each after all that it needs
        self.count = 0
        self._members: list[Sequence[Member]] = []
        self._by_name: dict[str, int] = {}
        self._below: list[list[tuple[int, frozenset[int] | None]]] | None = None
        self.extend(flow)

    def extend(self, flow: FlowSpec) -> dict[str, Target]:
        """Add the jobs of a flow and return what each text in its needs means. Raise GraphError and change nothing."""
        old_specs, old_count = len(self.specs), self.count
        problems: list[Problem] = []
        targets: dict[str, Target] = {}
        try:
            for spec in flow.jobs:
                if spec.name in self._by_name:
                    problems.append(Duplicate(len(self.specs), spec.name))
                self._append(spec)
            self._resolve_all(old_specs, targets, problems)
            order = self._sort(old_specs, problems)
            if problems:
                raise GraphError(problems)
        except ValueError:
            for spec in self.specs[old_specs:]:
                if self._by_name.get(spec.name, -1) >= old_specs:
                    del self._by_name[spec.name]
            del self.specs[old_specs:], self.starts[old_specs:], self._members[old_specs:], self.above[old_specs:]
            self.count = old_count
            raise
        self.order += order
        self._below = None
        return targets

    def _append(self, spec: JobSpec) -> None:
        its_members = members(spec)
        self._by_name.setdefault(spec.name, len(self.specs))
        self.specs.append(spec)
        self.starts.append(self.count)
        self._members.append(its_members)
        self.count += len(its_members)

    def _resolve_all(self, first: int, targets: dict[str, Target], problems: list[Problem]) -> None:
        resolver = _Resolver(self)
        known: dict[Needs, tuple[int, ...]] = {}
        by_identity: dict[int, tuple[int, ...]] = {}
        for at in range(first, len(self.specs)):
            needs = self.specs[at].needs
            above = by_identity.get(id(needs))
            if above is None:
                above = known.get(needs)
            if above is None:
                found: dict[int, None] = {}
                for text in texts_of(needs):
                    target = targets.get(text) or resolver.resolve(text)
                    if target is None:
                        hints = get_close_matches(text, self._by_name, n=1) if len(problems) < _HINTS else []
                        problems.append(UnknownNeed(at, self.specs[at].name, text, hints[0] if hints else None))
                        continue
                    targets[text] = target
                    found.update(dict.fromkeys(target.specs))
                    found.update(dict.fromkeys(self.spec_of(job) for job in target.jobs))
                above = tuple(found)
                if not problems:
                    known[needs] = by_identity[id(needs)] = above
            if at in above:
                through = next(text for text in texts_of(needs) if text in targets and self._has(targets[text], at))
                problems.append(SelfNeed(at, self.specs[at].name, through))
                above = tuple(spec for spec in above if spec != at)
            self.above.append(above)

    def _has(self, target: Target, spec: int) -> bool:
        return spec in target.specs or any(self.spec_of(job) == spec for job in target.jobs)

    def _sort(self, first: int, problems: list[Problem]) -> list[int]:
        """The new specs in topological order; those on a circle or below one are left out and said."""
        below: dict[int, list[int]] = {}
        missing = [0] * (len(self.specs) - first)
        ready: list[int] = []
        for at in range(first, len(self.specs)):
            for need in self.above[at]:
                if need >= first:
                    missing[at - first] += 1
                    below.setdefault(need, []).append(at)
            if not missing[at - first]:
                ready.append(at)
        for at in ready:  # grows while it is walked
            for lower in below.get(at, ()):
                missing[lower - first] -= 1
                if not missing[lower - first]:
                    ready.append(lower)
        if len(ready) < len(missing):
            for circle in cycles(len(self.specs), self.above):
                names = tuple(self.specs[spec].name for spec in circle)
                problems.append(Cycle(circle[0], (*names, names[0])))
        return ready

    def spec_named(self, name: str) -> int | None:
        return self._by_name.get(name)

    def spec_of(self, job: int) -> int:
        """The spec of a job. Specs without members share their start with the next one and are never found."""
        if not 0 <= job < self.count:
            raise IndexError(f"job {job} of {self.count}")
        return bisect_right(self.starts, job) - 1

    def jobs_of(self, spec: int) -> range:
        start = self.starts[spec]
        return range(start, start + len(self._members[spec]))

    def members_of(self, spec: int) -> Sequence[Member]:
        return self._members[spec]

    def name(self, job: int) -> str:
        spec = self.spec_of(job)
        return self.specs[spec].name + self._members[spec][job - self.starts[spec]].label

    def jobs_in(self, target: Target) -> Iterator[int]:
        for spec in target.specs:
            yield from self.jobs_of(spec)
        yield from target.jobs

    def below(self, job: int) -> list[int]:
        """All jobs that need this one, directly or through others, in order of their numbers."""
        return self.below_all((job,))

    def below_all(self, above: Iterable[int]) -> list[int]:
        """All jobs that need one of these, directly or through others, in order of their numbers."""
        down = self._below_by_spec()
        found: set[int] = set()
        by_spec: dict[int, set[int]] = {}
        for job in above:
            by_spec.setdefault(self.spec_of(job), set()).add(job)
        waiting = [
            lower
            for spec, ones in by_spec.items()
            for lower, only in down[spec]
            if only is None or not only.isdisjoint(ones)
        ]
        while waiting:
            spec = waiting.pop()
            if spec not in found:
                found.add(spec)
                jobs = self.jobs_of(spec)
                waiting += [lower for lower, only in down[spec] if jobs and (only is None or not only.isdisjoint(jobs))]
        return [lower for spec in sorted(found) for lower in self.jobs_of(spec)]

    def _below_by_spec(self) -> list[list[tuple[int, frozenset[int] | None]]]:
        if self._below is None:
            self._below = [[] for _ in self.specs]
            resolver = _Resolver(self)
            for at, spec in enumerate(self.specs):
                for text in texts_of(spec.needs):
                    target = resolver.resolve_among(text, self.above[at])
                    for need in target.specs:
                        self._below[need].append((at, None))
                    some = frozenset(target.jobs)
                    for need in {self.spec_of(job) for job in some}:
                        self._below[need].append((at, some))
        return self._below


def cycles(count: int, edges: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The first MAX_CYCLES circles of a graph: of each the nodes below `count`, the lowest first.

    Nodes from `count` on are no jobs, and a job that needs itself is no circle. Depth first without recursion: a node
    is new (0), on the path (1) or done (2).
    """
    seen = bytearray(len(edges))
    found = 0
    for start in range(count):
        if seen[start]:
            continue
        seen[start] = 1
        path, iterators = [start], [iter(edges[start])]
        while path:
            for target in iterators[-1]:
                if seen[target] == 0:
                    seen[target] = 1
                    path.append(target)
                    iterators.append(iter(edges[target]))
                    break
                if seen[target] == 1:
                    circle = [node for node in path[path.index(target) :] if node < count]
                    if len(circle) > 1:
                        lowest = circle.index(min(circle))
                        yield circle[lowest:] + circle[:lowest]
                        found += 1
                        if found == MAX_CYCLES:
                            return
            else:
                seen[path.pop()] = 2
                iterators.pop()


def texts_of(needs: Needs) -> Iterator[str]:
    """What the needs name, as written: all of `all_of`, then each group of `any_of`."""
    for need in needs.all_of:
        yield need.job
    for group in needs.any_of:
        for need in group:
            yield need.job


def problems_of(flow: FlowSpec) -> tuple[Problem, ...]:
    """Everything that is wrong with the needs of a flow; empty when it can be planned."""
    try:
        Graph(flow)
    except GraphError as error:
        return error.problems
    return ()


class _Resolver:
    """What texts mean, while the graph does not change. Labels of a matrix are kept from one text to the next."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._labels: dict[int, dict[str, int]] = {}

    def resolve(self, text: str) -> Target | None:
        """Return None when the text means no job."""
        exact = self._graph.spec_named(text)
        if exact is not None:
            return Target(specs=(exact,))
        if "*" not in text and "?" not in text and not text.endswith("]"):
            return None
        target = self.resolve_among(text, range(len(self._graph.specs)))
        return target if target.specs or target.jobs else None

    def resolve_among(self, text: str, specs: Iterable[int]) -> Target:
        """The same, with the given specs only."""
        exact = self._graph.spec_named(text)
        if exact is not None:
            return Target(specs=(exact,))
        base, bracket, rest = text.partition("[")
        if not (bracket and rest.endswith("]")):
            matches = glob_pattern(text)
            return Target(specs=tuple(spec for spec in specs if matches.fullmatch(self._graph.specs[spec].name)))
        only = self._graph.spec_named(base)
        if only is not None:
            specs = (only,)
        matches = glob_pattern(base)
        whole: list[int] = []
        some: list[int] = []
        for spec in specs:
            if self._graph.specs[spec].matrix is not None and matches.fullmatch(self._graph.specs[spec].name):
                jobs = self._select(spec, rest[:-1])
                if len(jobs) == len(self._graph.jobs_of(spec)):
                    whole.append(spec)
                else:
                    some += jobs
        return Target(specs=tuple(whole), jobs=tuple(some))

    def _select(self, spec: int, inside: str) -> list[int]:
        """The jobs of a matrix whose label fits what stands in the brackets."""
        labels = self._labels.get(spec)
        if labels is None:
            its_members = enumerate(self._graph.members_of(spec), self._graph.starts[spec])
            labels = self._labels[spec] = {member.label[1:-1]: job for job, member in its_members}
        if inside in labels:
            return [labels[inside]]
        if "=" not in inside:
            matches = glob_pattern(inside)
            return [job for label, job in labels.items() if matches.fullmatch(label)]
        wanted = [(name, glob_pattern(value)) for name, value in _assignments(inside)]
        found = []
        for job, member in enumerate(self._graph.members_of(spec), self._graph.starts[spec]):
            values = dict(member.values)
            if all(name in values and pattern.fullmatch(values[name]) for name, pattern in wanted):
                found.append(job)
        return found


def _assignments(inside: str) -> list[tuple[str, str]]:
    """`seed=2,lr=*` in pieces. A comma that no `name=` follows belongs to the value."""
    found: list[tuple[str, str]] = []
    for piece in inside.split(","):
        name, equals, value = piece.partition("=")
        if equals:
            found.append((name.strip(), value))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]},{piece}")
    return found
