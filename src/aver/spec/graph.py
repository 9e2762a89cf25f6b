"""Do the needs of a flow fit together: each names a job, none itself, and there is no cycle.

Linear in what was written: a glob, and a list that many jobs share, is one node between its
jobs and theirs, so a barrier of 1,000 x 1,000 costs 2,000 edges. A glob never means the job
that says it. Members are not looked at one by one: a job needs a job.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aver.core.address import NameIndex
from aver.core.model import JobSpec
from aver.core.template import names_in
from aver.spec.job import ReadJob
from aver.spec.mistakes import Mistakes, did_you_mean, shown
from aver.spec.needs import NeedAt, ReadNeeds

MAX_CYCLES = 20


def check_graph(jobs: Sequence[ReadJob], known: Sequence[JobSpec], mistakes: Mistakes) -> None:
    """Note every mistake in the needs of `jobs`. `known` are jobs that exist already and may be needed."""
    _Graph(jobs, known, mistakes).check()


class _Group:
    """What one written list of needs resolves to."""

    __slots__ = ("globs", "names", "node")

    def __init__(self, node: int) -> None:
        self.node = node
        self.names: set[str] = set()
        self.globs: list[str] = []


class _Glob:
    __slots__ = ("matches", "node", "own")

    def __init__(self, node: int, matches: list[str]) -> None:
        self.node = node
        self.matches = set(matches)
        self.own: list[int] = []  # jobs that say it and match it


class _Graph:
    def __init__(self, jobs: Sequence[ReadJob], known: Sequence[JobSpec], mistakes: Mistakes) -> None:
        self.jobs = jobs
        self.mistakes = mistakes
        self.specs = {spec.name: spec for spec in known} | {job.spec.name: job.spec for job in jobs}
        self.index = {job.spec.name: number for number, job in enumerate(jobs)}
        self.names = NameIndex(self.specs)
        self.edges: list[list[int]] = [[] for _ in jobs]
        self.groups: dict[int, _Group] = {}
        self.globs: dict[str, _Glob] = {}

    def check(self) -> None:
        for number, job in enumerate(self.jobs):
            if job.read_needs.written:
                self._connect(number, job)
        self._join_own_globs()
        self._find_cycles()

    def _connect(self, number: int, job: ReadJob) -> None:
        group = self.groups.get(id(job.read_needs))
        if group is None:
            group = self.groups[id(job.read_needs)] = self._resolve(job.read_needs, job)
        name = job.spec.name
        if name in group.names:
            written = next(one for one in job.read_needs.written if one.address.name == name)
            self.mistakes.add(written.place, f"job {shown(name)} needs itself", "take it out of its needs")
        own = [glob for glob in group.globs if name in self.globs[glob].matches]
        if not own:
            self.edges[number].append(group.node)
            return
        self.edges[number] += [self.index[need] for need in group.names if need in self.index]
        for glob in group.globs:
            if glob in own:
                self.globs[glob].own.append(number)
            else:
                self.edges[number].append(self.globs[glob].node)

    def _resolve(self, read: ReadNeeds, job: ReadJob) -> _Group:
        group = _Group(self._new_node())
        for written in read.written:
            name = self._pattern(written, job)
            if _is_wild(name):
                if self._glob(name, written, job):
                    group.globs.append(name)
            elif name not in self.specs:
                self._note_unknown(name, written, job)
            else:
                group.names.add(name)
                self._check_members(written, self.specs[name], job)
        targets = self.edges[group.node]
        targets += [self.index[need] for need in group.names if need in self.index]
        targets += [self.globs[glob].node for glob in dict.fromkeys(group.globs)]
        return group

    def _pattern(self, written: NeedAt, job: ReadJob) -> str:
        """The name or glob; a `{seed}` of the job's own matrix may become anything."""
        name = written.address.name
        if "{" in name and job.spec.matrix is not None:
            for axis in names_in(name) & _declared(job.spec):
                name = name.replace(f"{{{axis}}}", "*")
        return name

    def _glob(self, glob: str, written: NeedAt, job: ReadJob) -> bool:
        known = self.globs.get(glob)
        if known is None:
            known = _Glob(self._new_node(), self.names.matching(glob))
            self.globs[glob] = known
            self.edges[known.node] += [self.index[name] for name in known.matches if name in self.index]
        if known.matches - {job.spec.name} if len(known.matches) == 1 else known.matches:
            return True
        text = f"job {shown(job.spec.name)} needs {shown(written.need.job)}, which matches no other job"
        self.mistakes.add(written.place, text, "look at the names of the jobs")
        return False

    def _note_unknown(self, name: str, written: NeedAt, job: ReadJob) -> None:
        text = f"job {shown(job.spec.name)} needs {shown(name)}, which is no job of this flow"
        self.mistakes.add(written.place, text, did_you_mean(name, self.specs))

    def _check_members(self, written: NeedAt, target: JobSpec, job: ReadJob) -> None:
        if not written.address.values:
            return
        said = f"job {shown(job.spec.name)} needs {shown(written.need.job)}"
        if target.matrix is None:
            self.mistakes.add(written.place, f"{said}, but {shown(target.name)} has no matrix", f"write {target.name}")
            return
        values: dict[str, set[str]] = {name: set(texts) for name, texts in target.matrix.axes}
        for row in target.matrix.include:
            for axis, value in row:
                values.setdefault(axis, set()).add(value)
        for axis, value in written.address.values:
            if axis not in values:
                hint = did_you_mean(axis, values)
                self.mistakes.add(written.place, f"{said}, but its matrix has no {shown(axis)}", hint)
            elif value not in values[axis] and not names_in(value) & _declared(job.spec):
                hint = did_you_mean(value, values[axis])
                self.mistakes.add(written.place, f"{said}, but {shown(value)} is no value of {axis}", hint)

    def _join_own_globs(self) -> None:
        """A glob leaves out the job that says it. Two jobs that say it and match it need each other."""
        for glob in self.globs.values():
            if len(glob.own) == 1:
                number = glob.own[0]
                own = self.jobs[number].spec.name
                self.edges[number] += [self.index[name] for name in glob.matches if name != own and name in self.index]
            elif glob.own:
                self._note_cycle([glob.own[0], glob.own[1]])

    def _new_node(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def _find_cycles(self) -> None:
        """Depth first without recursion. A node is new (0), on the path (1) or done (2)."""
        edges, seen = self.edges, bytearray(len(self.edges))
        found = 0
        for start in range(len(self.jobs)):
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
                    if seen[target] == 1 and found < MAX_CYCLES:
                        cycle = [node for node in path[path.index(target) :] if node < len(self.jobs)]
                        if len(cycle) > 1:
                            found += 1
                            self._note_cycle(cycle)
                else:
                    seen[path.pop()] = 2
                    iterators.pop()

    def _note_cycle(self, cycle: list[int]) -> None:
        first = cycle.index(min(cycle))
        names = [self.jobs[number].spec.name for number in cycle[first:] + cycle[:first]]
        shown_names = names if len(names) <= 12 else [*names[:6], "...", *names[-5:]]
        path = " -> ".join([*shown_names, names[0]])
        self.mistakes.add(self.jobs[min(cycle)].name, f"jobs need each other in a cycle: {path}", "take one need out")


def _is_wild(name: str) -> bool:
    return re.search(r"[*?\[]", name) is not None


def _declared(spec: JobSpec) -> set[str]:
    if spec.matrix is None:
        return set()
    return {name for name, _ in spec.matrix.axes} | {name for row in spec.matrix.include for name, _ in row}
