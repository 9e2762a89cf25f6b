"""Which job needs which: names resolved, mistakes found, order known.

Pure, and the only place that says whether the needs of a flow fit together. What the texts mean is in `plan.needs`.
The graph is kept between specs: a matrix of 100,000 that needs a matrix of 100,000 is one edge, and specs with the same
needs share a group, so that 1,000 jobs that need 1,000 jobs cost 2,000 edges. Jobs are numbered in order of expansion;
a flow that is added later goes on where the last one ended. A glob means the jobs that are known when its own job is
added; it never grows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from aver.model.job import FlowSpec, JobSpec, Needs
from aver.model.suggestion import shown
from aver.plan.lanes import Link
from aver.plan.matrix import Member, members
from aver.plan.needs import Problem, Resolver, Target, TooManyComparisons, is_member_wise, texts_of

MAX_CYCLES = 20
MOST_SHOWN = 12  # names of a cycle


class GraphError(ValueError):
    """A flow that can't be planned, with all its problems; its text is one sentence each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in problems))


class Group:
    """What one list of needs means: a target or link for each of its texts, and the specs in them."""

    __slots__ = ("above", "targets")

    def __init__(self, targets: tuple[Target | Link, ...], above: Iterable[int]) -> None:
        self.targets = targets
        self.above = dict.fromkeys(above)  # in the order of the needs


class Graph:
    """The specs of a run, in order, and what each needs. Only grows, and only by whole flows without problems."""

    def __init__(self, flow: FlowSpec) -> None:
        """Raise GraphError with every problem of the flow."""
        self.specs: list[JobSpec] = []
        self.starts: list[int] = []
        self.groups: list[Group] = []  # by spec
        self.order: list[int] = []  # specs, each after all that it needs
        self.count = 0
        self._members: list[Sequence[Member]] = []
        self._by_name: dict[str, int] = {}
        self._below: list[list[tuple[int, frozenset[int] | Link | None]]] | None = None
        self._rank: list[int] = []
        self.extend(flow)

    @classmethod
    def beside(cls, known: Sequence[JobSpec]) -> Graph:
        """A graph of jobs whose own needs were resolved before and do not matter."""
        graph = cls(FlowSpec("", ()))
        nothing = Group((), ())
        for spec in known:
            graph.order.append(len(graph.specs))
            graph.groups.append(nothing)
            graph._append(spec)
        return graph

    def extend(self, flow: FlowSpec) -> None:
        """Add the jobs of a flow. Raise GraphError and change nothing."""
        old_specs, old_count = len(self.specs), self.count
        problems: list[Problem] = []
        try:
            for spec in flow.jobs:
                if spec.name in self._by_name:
                    text = f"duplicate job name {shown(spec.name)}"
                    problems.append(Problem(len(self.specs), "", text))
                self._append(spec)
            problems += self._resolve_all(old_specs)
            order = self._sort(old_specs, problems)
            if problems:
                raise GraphError(problems)
        except ValueError:
            for spec in self.specs[old_specs:]:
                if self._by_name.get(spec.name, -1) >= old_specs:
                    del self._by_name[spec.name]
            del self.specs[old_specs:], self.starts[old_specs:], self._members[old_specs:], self.groups[old_specs:]
            self.count = old_count
            raise
        self.order += order
        self._below = None

    def _append(self, spec: JobSpec) -> None:
        its_members = members(spec)
        self._by_name.setdefault(spec.name, len(self.specs))
        self.specs.append(spec)
        self.starts.append(self.count)
        self._members.append(its_members)
        self.count += len(its_members)

    def _resolve_all(self, first: int) -> list[Problem]:
        resolver = Resolver(self.specs, self.starts, self._members, self._by_name)
        known: dict[Needs, Group] = {}
        by_identity: dict[int, Group] = {}
        for at in range(first, len(self.specs)):
            needs = self.specs[at].needs
            group = by_identity.get(id(needs)) or known.get(needs)
            if group is None:
                try:
                    group = self._resolve(resolver, at)
                except TooManyComparisons:
                    text = "the patterns in needs would have to be compared with too many names of jobs and members"
                    hint = "need whole jobs, or single members by their full names"
                    self.groups += [Group((), ())] * (len(self.specs) - at)
                    return [*resolver.problems, Problem(at, "", text, hint)]
                if not any(is_member_wise(text, self.specs[at]) for text in texts_of(needs)):
                    known[needs] = by_identity[id(needs)] = group
            self.groups.append(group)
            if at in group.above:
                resolver.problems.append(self._self_need(at))
        return resolver.problems

    def _resolve(self, resolver: Resolver, at: int) -> Group:
        targets = [resolver.resolve(at, text) for text in texts_of(self.specs[at].needs)]
        known = tuple([target for target in targets if target is not None])
        return Group(known, [spec for target in known for spec in self.specs_in(target)])

    def _self_need(self, at: int) -> Problem:
        name = self.specs[at].name
        texts = list(texts_of(self.specs[at].needs))
        named = next((text for text in texts if text.partition("[")[0] == name), None)
        if named is not None:
            return Problem(at, named, f"job {shown(name)} needs itself", "take it out of its needs")
        graph = Resolver(self.specs, self.starts, self._members, self._by_name)
        for text in texts:
            target = graph.resolve(at, text)
            if target is not None and at in (target.lanes.specs if isinstance(target, Link) else target.specs):
                break
        said = f"job {shown(name)} needs itself, since {shown(text.partition('[')[0])} matches it"
        return Problem(at, text, said, "name the jobs so that the glob leaves it out")

    def _sort(self, first: int, problems: list[Problem]) -> list[int]:
        """The new specs in topological order; those on a circle or below one are left out and noted."""
        count = len(self.specs) - first
        nodes: dict[int, int] = {}  # by the identity of a group
        edges: list[list[int]] = [[] for _ in range(count)]  # from each node to those that it needs
        for at in range(first, len(self.specs)):
            group = self.groups[at]
            if not group.above:
                continue
            node = nodes.get(id(group))
            if node is None:
                node = nodes[id(group)] = len(edges)
                edges.append([need - first for need in group.above if need >= first])
            edges[at - first].append(node)
        below: list[list[int]] = [[] for _ in edges]
        missing = [len(needed) for needed in edges]
        for node, needed in enumerate(edges):
            for one in needed:
                below[one].append(node)
        ready = [node for node, left in enumerate(missing) if not left]
        for node in ready:  # grows while it is walked
            for lower in below[node]:
                missing[lower] -= 1
                if not missing[lower]:
                    ready.append(lower)
        if len(ready) < len(edges):
            for circle in cycles(count, edges):
                names = [self.specs[first + node].name for node in circle]
                cut = names if len(names) <= MOST_SHOWN else [*names[:6], "...", *names[-5:]]
                text = f"jobs need each other in a cycle: {' -> '.join([*cut, names[0]])}"
                problems.append(Problem(first + circle[0], "", text, "take one need out"))
        return [first + node for node in ready if node < count]

    def specs_in(self, target: Target | Link) -> Iterable[int]:
        """The specs of the jobs that a need means."""
        if isinstance(target, Link):
            return target.lanes.specs
        return (*target.specs, *dict.fromkeys(self.spec_of(job) for job in target.jobs))

    def above(self, spec: int) -> Iterable[int]:
        """The specs that a spec needs."""
        return self.groups[spec].above.keys()

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

    def member(self, job: int) -> Member:
        spec = self.spec_of(job)
        return self._members[spec][job - self.starts[spec]]

    def name(self, job: int) -> str:
        return self.specs[self.spec_of(job)].name + self.member(job).label

    def jobs_in(self, target: Target) -> Iterator[int]:
        for spec in target.specs:
            yield from self.jobs_of(spec)
        yield from target.jobs

    def below(self, job: int) -> list[int]:
        """All jobs that need this one, directly or through others, in order of their numbers."""
        return self.below_all((job,))

    def below_all(self, above: Iterable[int]) -> list[int]:
        """All jobs that need one of these, directly or through others, in order of their numbers."""
        down, rank = self._edges_below()
        reached: dict[int, set[int] | range] = {}  # by spec: the jobs that are given or found
        found: dict[int, set[int] | range] = {}
        waiting: list[int] = []  # ranks of specs: each is walked once, after all that are above it
        for job in above:
            spec = self.spec_of(job)
            if spec not in reached:
                reached[spec] = set()
                heappush(waiting, rank[spec])
            some = reached[spec]
            assert isinstance(some, set)
            some.add(job)
        while waiting:
            spec = self.order[heappop(waiting)]
            for lower, edge in down[spec]:
                jobs = self._hit(lower, edge, reached[spec], spec)
                if not jobs or isinstance(found.get(lower), range):
                    continue
                if lower not in reached:
                    heappush(waiting, rank[lower])
                for table in (found, reached):
                    known = table.get(lower, ())
                    table[lower] = jobs if isinstance(jobs, range) else jobs.union(known)
        return [job for spec in sorted(found) for job in sorted(found[spec])]

    def _hit(
        self, lower: int, edge: frozenset[int] | Link | None, jobs: set[int] | range, spec: int
    ) -> set[int] | range:
        """The jobs of a lower spec that need one of these jobs of a spec."""
        if isinstance(edge, Link):
            lanes, start = edge.lanes.lane_of[spec], self.starts[spec]
            first = self.starts[lower]
            hit = {lanes[job - start] for job in jobs}
            return {first + member for lane in hit if lane >= 0 for member in edge.members(lane)}
        return self.jobs_of(lower) if edge is None or not edge.isdisjoint(jobs) else set()

    def _edges_below(self) -> tuple[list[list[tuple[int, frozenset[int] | Link | None]]], list[int]]:
        """By spec: each spec that needs it, and which of its jobs (None: any); and the rank of each spec."""
        if self._below is None:
            self._below = [[] for _ in self.specs]
            self._rank = [0] * len(self.specs)
            for place, spec in enumerate(self.order):
                self._rank[spec] = place
            for at, group in enumerate(self.groups):
                for target in group.targets:
                    if isinstance(target, Link):
                        for need in target.lanes.specs:
                            self._below[need].append((at, target))
                        continue
                    for need in target.specs:
                        self._below[need].append((at, None))
                    some = frozenset(target.jobs)
                    for need in {self.spec_of(job) for job in some}:
                        self._below[need].append((at, some))
        return self._below, self._rank


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
