"""A part of a flow: the jobs that were chosen, without those that were not. Pure.

What is not selected does not become a job of the run; the flow keeps its name. Nobody waits for it: a need on it is
dropped. A job that would run only for its failure, or for another bad end, is not selected either, nor is what needs
such a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aver.errors import UsageError
from aver.model.job import Condition, FlowSpec, JobSpec, Need, Needs, Outcome
from aver.model.record import Record, replace
from aver.model.states import State
from aver.model.suggestion import did_you_mean
from aver.plan.address import NameIndex, is_glob, parse_address
from aver.plan.graph import Graph
from aver.plan.matrix import declared_names, members
from aver.plan.placeholders import fill, names_in


class Selection(Record):
    """Names or globs of jobs, by option. Each option that is given narrows the flow."""

    only: tuple[str, ...] = ()
    until: tuple[str, ...] = ()  # these, and what they need
    start: tuple[str, ...] = ()  # these, and what needs them (`--from`)
    skip: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()  # words of `tags`, not names

    @property
    def is_all(self) -> bool:
        return not (self.only or self.until or self.start or self.skip or self.tag)


def select(flow: FlowSpec, selection: Selection) -> FlowSpec:
    """The part of the flow. Raise UsageError for a name that no job has, and if nothing is left."""
    if selection.is_all:
        return flow
    names = [spec.name for spec in flow.jobs]
    graph = Graph(flow)
    above = {spec.name: {names[at] for at in graph.above(index)} for index, spec in enumerate(flow.jobs)}
    chosen = set(names)
    if selection.only:
        chosen &= _named(selection.only, "--only", names)
    if selection.tag:
        chosen &= _tagged(selection.tag, flow)
    if selection.until:
        chosen &= _closed(_named(selection.until, "--until", names), above)
    if selection.start:
        chosen &= _closed(_named(selection.start, "--from", names), _reversed(above))
    if selection.skip:
        chosen -= _named(selection.skip, "--skip", names)
    return without(flow, [name for name in names if name not in chosen])


def without(flow: FlowSpec, names: Iterable[str]) -> FlowSpec:
    """The flow without these jobs, and without those that can't run without them. Unknown names are ignored.

    Raise UsageError if nothing is left, or if some members of a job need a job that is gone and others do not.
    """
    left_out = frozenset(names)
    if not left_out:
        return flow
    known = [spec.name for spec in flow.jobs]
    gone = _Gone(known, left_out)
    while True:
        kept = [(spec, gone.reduced(spec)) for spec in flow.jobs if spec.name not in gone.names]
        more = {spec.name for spec, reduced in kept if reduced is None}
        if not more:
            break
        gone.names |= more
    if not kept:
        raise UsageError(f"no job of the flow {flow.name!r} is selected")
    jobs = tuple([reduced for _, reduced in kept if reduced is not None])
    return replace(flow, jobs=jobs, unselected=tuple(name for name in known if name in gone.names))


def _named(words: Sequence[str], option: str, names: Sequence[str]) -> set[str]:
    index, found = NameIndex(names), set[str]()
    for word in words:
        some = index.matching(word) if is_glob(word) else [word] if word in set(names) else []
        if not some:
            is_member = "[" in word and word.partition("[")[0] in set(names)
            hint = "give the job, with all its members" if is_member else did_you_mean(word, names)
            raise UsageError(f"{option} {word}: no job of the flow has that name" + (f"; {hint}" if hint else ""))
        found.update(some)
    return found


def _tagged(words: Sequence[str], flow: FlowSpec) -> set[str]:
    """The jobs that have one of these tags."""
    known = list(dict.fromkeys(tag for spec in flow.jobs for tag in spec.tags))
    for word in words:
        if word not in known:
            hint = did_you_mean(word, known) or (f"it has {', '.join(known)}" if known else f"write tags: [{word}]")
            raise UsageError(f"--tag {word}: no job of the flow has that tag; {hint}")
    return {spec.name for spec in flow.jobs if not frozenset(words).isdisjoint(spec.tags)}


def _closed(names: set[str], edges: dict[str, set[str]]) -> set[str]:
    found, waiting = set(names), list(names)
    while waiting:
        more = edges[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def _reversed(above: dict[str, set[str]]) -> dict[str, set[str]]:
    below: dict[str, set[str]] = {name: set() for name in above}
    for name, needed in above.items():
        for one in needed:
            below[one].add(name)
    return below


class _Gone:
    """The jobs that are not in the run: those that were left out, and those that can't come to run without them."""

    def __init__(self, known: Sequence[str], left_out: frozenset[str]) -> None:
        self.names = set(left_out)
        self._left_out = left_out
        self._index = NameIndex(known)

    def reduced(self, spec: JobSpec) -> JobSpec | None:
        """The job without needs on jobs that are gone; None if it can't come to run without them."""
        all_of = tuple(need for need in spec.needs.all_of if not self._has(spec, need))
        groups = [tuple(need for need in group if not self._has(spec, need)) for group in spec.needs.any_of]
        needs = Needs(all_of, tuple(left for left in groups if left))
        if needs == spec.needs:
            return spec
        if spec.condition is Condition.FAILURE and needs == Needs():
            return None
        if spec.condition is Condition.NEEDS:
            dropped: list[tuple[Need, ...]] = [(need,) for need in spec.needs.all_of if need not in all_of]
            dropped += [group for group, left in zip(spec.needs.any_of, groups, strict=True) if not left]
            if not all(any(self._lets_run(spec, need) for need in group) for group in dropped):
                return None
        return replace(spec, needs=needs)

    def _has(self, spec: JobSpec, need: Need) -> bool:
        return self.names.issuperset(self._meant(spec, need))

    def _lets_run(self, spec: JobSpec, need: Need) -> bool:
        """Whether a job runs for a need of which all is gone: what was left out counts as done before."""
        as_if = State.COMPLETED if self._left_out.issuperset(self._meant(spec, need)) else State.SKIPPED
        if need.states:
            return as_if in need.states
        return need.outcome is Outcome.ANY or (need.outcome is Outcome.SUCCESS and as_if is State.COMPLETED)

    def _meant(self, spec: JobSpec, need: Need) -> set[str]:
        """The names of the jobs that a need means."""
        name = parse_address(need.job).name
        if names_in(name) & declared_names(spec).keys():
            found = {fill(name, dict(member.values)) for member in members(spec)}
            if (some := sorted(self.names & found)) and not self.names >= found:
                raise UsageError(f"{some[0]} can't be left out: some members of {spec.name} need it, and others do not")
            return found
        return {one for one in self._index.matching(name) if one != spec.name} if is_glob(name) else {name}
