"""Do the needs of a flow fit together: each names a job, none itself, and there is no cycle.

Linear in what was written: a glob, and a list that many jobs share, is one node between its
jobs and theirs, so a barrier of 1,000 x 1,000 costs 2,000 edges. Members are not looked at one
by one: a job needs a job. Cycles are found by `plan.graph`, which can plan what passes here.
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.model.job import JobSpec
from aver.plan.address import NameIndex, glob_pattern, is_glob
from aver.plan.graph import cycles
from aver.plan.matrix import Member, members
from aver.plan.placeholders import names_in
from aver.spec.flow.job import ReadJob
from aver.spec.flow.needs import NeedAt, ReadNeeds
from aver.spec.mistakes import Mistakes, did_you_mean, shown

MOST_COMPARED = 10_000_000  # how often a pattern may be compared with a name, in one flow


def check_graph(jobs: Sequence[ReadJob], known: Sequence[JobSpec], mistakes: Mistakes) -> None:
    """Note every mistake in the needs of `jobs`.

    `known` are jobs that exist already and may be needed.
    """
    _Graph(jobs, known, mistakes).check()


class _Group:
    """What one written list of needs resolves to."""

    __slots__ = ("globs", "names", "node")

    def __init__(self, node: int) -> None:
        self.node = node
        self.names: set[str] = set()
        self.globs: list[str] = []


class _Glob:
    __slots__ = ("matches", "node")

    def __init__(self, node: int, matches: list[str]) -> None:
        self.node = node
        self.matches = set(matches)


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
        self.values: dict[str, dict[str, set[str]]] = {}  # by job: the values of each name of its matrix
        self.members: dict[str, tuple[Sequence[Member], frozenset[str]]] = {}  # by job: its members, and their labels
        self.compared = 0

    def check(self) -> None:
        for number, job in enumerate(self.jobs):
            if job.read_needs.written:
                self._connect(number, job)
            if self.compared > MOST_COMPARED:
                text = "the patterns in needs would have to be compared with too many names of jobs and members"
                self.mistakes.add(job.name, text, "need whole jobs, or single members by their full names")
                return
        for circle in cycles(len(self.jobs), self.edges):
            self._note_cycle(circle)

    def _connect(self, number: int, job: ReadJob) -> None:
        group = self.groups.get(id(job.read_needs))
        if group is None:
            group = self.groups[id(job.read_needs)] = self._resolve(job.read_needs, job)
        name = job.spec.name
        if name in group.names:
            written = next(one for one in job.read_needs.written if one.address.name == name)
            self.mistakes.add(written.place, f"job {shown(name)} needs itself", "take it out of its needs")
        for glob in group.globs:
            if name in self.globs[glob].matches:
                written = next(one for one in job.read_needs.written if one.address.name == glob)
                text = f"job {shown(name)} needs itself, since {shown(glob)} matches it"
                self.mistakes.add(written.place, text, "name the jobs so that the glob leaves it out")
        self.edges[number].append(group.node)

    def _resolve(self, read: ReadNeeds, job: ReadJob) -> _Group:
        group = _Group(self._new_node())
        for written in read.written:
            name = written.address.name
            own_axes = names_in(written.need.job) & _declared(job.spec)
            if own_axes:
                text = f"job {shown(job.spec.name)} uses {{{min(own_axes)}}} in its needs"
                self.mistakes.add(written.place, text, "all members of a matrix need the same jobs")
            elif written.address.is_glob:
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

    def _glob(self, glob: str, written: NeedAt, job: ReadJob) -> bool:
        known = self.globs.get(glob)
        if known is None:
            self.compared += len(self.specs)
            known = _Glob(self._new_node(), self.names.matching(glob))
            self.globs[glob] = known
            self.edges[known.node] += [self.index[name] for name in known.matches if name in self.index]
        if known.matches:
            self._check_glob_members(written, known, job)
            return True
        text = f"job {shown(job.spec.name)} needs {shown(written.need.job)}, which matches no job"
        self.mistakes.add(written.place, text, "look at the names of the jobs")
        return False

    def _check_glob_members(self, written: NeedAt, glob: _Glob, job: ReadJob) -> None:
        if not written.address.values:
            return
        if not any(self._has_members(self.specs[name], written) for name in glob.matches):
            text = f"job {shown(job.spec.name)} needs {shown(written.need.job)}, which matches no member"
            self.mistakes.add(written.place, text, "look at the matrices of the jobs")

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
        values = self._values_of(target)
        fits = True
        for axis, value in written.address.values:
            if axis not in values:
                fits = False
                hint = did_you_mean(axis, values)
                self.mistakes.add(written.place, f"{said}, but its matrix has no {shown(axis)}", hint)
            elif not self._is_value(value, values[axis]):
                fits = False
                hint = did_you_mean(value, values[axis])
                self.mistakes.add(written.place, f"{said}, but {shown(value)} is no value of {axis}", hint)
        if fits and not self._has_members(target, written):
            self.mistakes.add(written.place, f"{said}, but there is no such member", "look at its matrix")

    def _values_of(self, spec: JobSpec) -> dict[str, set[str]]:
        known = self.values.get(spec.name)
        if known is None:
            known = self.values[spec.name] = _values_of(spec)
        return known

    def _is_value(self, value: str, known: set[str]) -> bool:
        if value in known:
            return True
        if not is_glob(value):
            return False
        self.compared += len(known)
        return self.compared <= MOST_COMPARED and any(map(glob_pattern(value).fullmatch, known))

    def _has_members(self, spec: JobSpec, written: NeedAt) -> bool:
        """Whether a member fits; a plain product has every combination, so only the values are looked at."""
        address = written.address
        values = self._values_of(spec)
        if not all(axis in values and self._is_value(value, values[axis]) for axis, value in address.values):
            return False
        assert spec.matrix is not None
        if not (spec.matrix.zip or spec.matrix.include or spec.matrix.exclude):
            return True
        known = self.members.get(spec.name)
        if known is None:
            found = members(spec)
            known = self.members[spec.name] = (found, frozenset(member.label for member in found))
        its_members, labels = known
        if written.need.job.removeprefix(spec.name) in labels:
            return True
        self.compared += len(its_members)
        if self.compared > MOST_COMPARED:
            return True
        wanted = [(axis, glob_pattern(value)) for axis, value in address.values]
        for member in its_members:
            its = dict(member.values)
            if all(axis in its and pattern.fullmatch(its[axis]) for axis, pattern in wanted):
                return True
        return False

    def _new_node(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def _note_cycle(self, cycle: list[int]) -> None:
        names = [self.jobs[number].spec.name for number in cycle]
        shown_names = names if len(names) <= 12 else [*names[:6], "...", *names[-5:]]
        path = " -> ".join([*shown_names, names[0]])
        self.mistakes.add(self.jobs[cycle[0]].name, f"jobs need each other in a cycle: {path}", "take one need out")


def _values_of(spec: JobSpec) -> dict[str, set[str]]:
    if spec.matrix is None:
        return {}
    values = {name: set(texts) for name, texts in spec.matrix.axes}
    for row in spec.matrix.include:
        for axis, value in row:
            values.setdefault(axis, set()).add(value)
    return values


def _declared(spec: JobSpec) -> set[str]:
    if spec.matrix is None:
        return set()
    return {name for name, _ in spec.matrix.axes} | {name for row in spec.matrix.include for name, _ in row}
