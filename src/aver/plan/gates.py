"""Counters that say when the needs of a job are settled as required.

Pure, and only for `plan.planner`. A *term* counts the jobs of one need: how many are settled as
the need wants (`good`) and how many otherwise (`other`). A strict term is met when all are
good and dead when one is not. A lenient term is met when one is good and dead when none can
be; so is a term over terms, which stands for `any_of`. A *gate* is all terms of one `needs:`
with its `if:`. Specs with equal needs share a gate, and needs on the same jobs share a term,
so that 1,000 jobs that need 1,000 jobs cost 2,000 counts. Where each member has its own needs,
the gates are a family: one for each combination of lanes (`plan.lanes`), with a term for each lane.

A second kind of term, the trouble term, counts jobs below a failure: a job is tainted when it
failed, or was skipped and one of its needs is tainted; it is clean when it is settled and can
no longer become tainted. `if: failure` is the lenient term over the trouble terms of its needs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from aver.model.job import Condition
from aver.model.states import State
from aver.plan.codes import CODES, wanted
from aver.plan.families import Column, Family, LaneTerms, by_lane, distinct
from aver.plan.graph import Graph
from aver.plan.lanes import Lanes, Link
from aver.plan.needs import Target, texts_of
from aver.plan.placeholders import fill

WAITING, MET, DEAD = 0, 1, 2  # of terms and gates
UNKNOWN, TAINTED, CLEAN = 0, 1, 2  # of jobs

_NOBODY: list[int] = []  # shared, never changed
_TROUBLE = 0  # the mask of trouble terms: they count taint, not states


Over = Target | tuple[int, ...] | LaneTerms  # jobs, the terms of an `any_of`, or a lane


class Gates:
    """All terms and gates of a run. After `enter`, `leave` and `mark`, `changed` and `views` say what to look at."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._good: list[int] = []
        self._other: list[int] = []
        self._size: list[int] = []
        self._mask: list[int] = []
        self._strict: list[bool] = []
        self._status: list[int] = []
        self._blamed: list[int] = []  # the first job that made a strict term dead, or -1
        self._over: list[Over] = []
        self._heard_by: list[list[int]] = []  # gates, and terms over terms as ~term
        self._viewed_by: dict[int, list[int]] = {}  # the trouble of gates, to those gates
        self._terms: dict[tuple[Target, int, bool], int] = {}
        self._by_identity: dict[tuple[int, int, bool], int] = {}  # the same, by the identity of the graph's target
        self._lane_terms: dict[tuple[int, int, bool], LaneTerms] = {}  # by the identity of the lanes
        self._counting: dict[int, list[int]] = {}  # spec to the terms that count all its jobs
        self._counting_job: dict[int, list[int]] = {}  # job to the terms that count it alone
        self._counting_lanes: dict[int, list[LaneTerms]] = {}  # spec to the terms that count its jobs by their lanes
        self._trouble: dict[int, list[int]] = {}
        self._trouble_job: dict[int, list[int]] = {}
        self._trouble_lanes: dict[int, list[LaneTerms]] = {}
        self._family_of_spec: list[Family] = []
        self._family: list[Family] = []  # by gate
        self._waits: list[int] = []
        self._dead: list[int] = []
        self._cause: list[int] = []  # the dead term for which its jobs are skipped, or -1
        self.changed: list[int] = []  # gates whose status or cause changed
        self.views: list[int] = []  # gates whose trouble changed

    def extend(self, codes: Sequence[int], taints: Sequence[int]) -> None:
        """Make the gates of the specs that the graph has and we have not."""
        known: dict[tuple[object, ...], Family] = {}
        by_identity: dict[tuple[Condition, int], Family] = {}
        for at in range(len(self._family_of_spec), len(self._graph.specs)):
            spec, group = self._graph.specs[at], self._graph.groups[at]
            is_shared = not any(isinstance(target, Link) for target in group.targets)
            key = (spec.condition, spec.needs)
            family = by_identity.get((spec.condition, id(spec.needs))) or (known.get(key) if is_shared else None)
            if family is None or not is_shared:
                family = self._make_family(at, codes, taints)
                if is_shared:
                    known[key] = by_identity[spec.condition, id(spec.needs)] = family
            self._family_of_spec.append(family)
            family.specs.append(at)

    @property
    def count(self) -> int:
        return len(self._family)

    def gate_of(self, job: int, spec: int) -> int:
        family = self._family_of_spec[spec]
        if family.gate_of_member is None:
            return family.first
        return family.first + family.gate_of_member[job - self._graph.starts[spec]]

    def jobs_of(self, gate: int) -> Iterable[int]:
        """The jobs that have the gate."""
        family = self._family[gate]
        if family.gate_of_member is None:
            specs = family.specs
            return self._graph.jobs_of(specs[0]) if len(specs) == 1 else chain(*map(self._graph.jobs_of, specs))
        start = self._graph.starts[family.specs[0]]
        return [start + member for member in family.members(gate)]

    def condition(self, gate: int) -> Condition:
        """`if:` of all jobs that have the gate."""
        return self._graph.specs[self._family[gate].specs[0]].condition

    def _make_family(self, at: int, codes: Sequence[int], taints: Sequence[int]) -> Family:
        spec, group = self._graph.specs[at], self._graph.groups[at]
        links = list({id(one): one for one in group.targets if isinstance(one, Link)}.values())
        family = self._number_gates(links)
        every = [*spec.needs.all_of, *(need for some in spec.needs.any_of for need in some)]

        def column(target: Target | Link, mask: int, strict: bool) -> Column:
            if isinstance(target, Target):
                return self._term(target, mask, strict, codes, taints)
            terms = self._lane_block(target.lanes, mask, strict, codes, taints)
            if family.size == len(target.of_member):
                return array("q", [terms.first + lane for lane in target.of_member])
            found = array("q", bytes(8 * family.size))
            assert family.gate_of_member is not None
            for gate, lane in zip(family.gate_of_member, target.of_member, strict=True):
                found[gate] = terms.first + lane
            return found

        leaves = [
            column(target, *wanted(need, spec.condition)) for need, target in zip(every, group.targets, strict=True)
        ]
        troubles = distinct([column(target, _TROUBLE, False) for target in group.targets])
        view = troubles[0] if len(troubles) == 1 else self._term_over(troubles, family)
        terms: list[Column] = leaves
        match spec.condition:
            case Condition.NEEDS:
                terms = leaves[: len(spec.needs.all_of)]
                first = len(terms)
                for some in spec.needs.any_of:
                    if some:
                        terms.append(self._term_over(distinct(leaves[first : first + len(some)]), family))
                    first += len(some)
            case Condition.FAILURE:
                terms = [*leaves, view]
        family.terms, family.leaves, family.view = tuple(distinct(terms)), tuple(leaves), view
        self._view(view, family)
        for gate in range(family.first, family.first + family.size):
            self._start_gate(family, gate)
        for one in family.terms:
            self._hear_all(one, family)
        return family

    def _number_gates(self, links: list[Link]) -> Family:
        """A family with a gate for each combination of lanes."""
        first, size = len(self._family), 1
        gate_of_member: array[int] | None = None
        if links:
            known: dict[object, int] = {}
            rows = zip(*[link.of_member for link in links], strict=True) if len(links) > 1 else links[0].of_member
            gate_of_member = array("q", [known.setdefault(row, len(known)) for row in rows])
            size = len(known)
        family = Family(first, size, gate_of_member)
        self._family += [family] * size
        return family

    def _start_gate(self, family: Family, gate: int) -> None:
        waits = dead = 0
        cause = -1
        for column in family.terms:
            term = column if isinstance(column, int) else column[gate - family.first]
            status = self._status[term]
            waits += status != MET
            if status == DEAD:
                dead += 1
                cause = term if cause < 0 else cause
        self._waits.append(waits)
        self._dead.append(dead)
        self._cause.append(cause)

    def _terms_of(self, gate: int) -> Iterator[int]:
        family = self._family[gate]
        return (column if isinstance(column, int) else column[gate - family.first] for column in family.terms)

    def _trouble_of(self, gate: int) -> int:
        family = self._family[gate]
        return family.view if isinstance(family.view, int) else family.view[gate - family.first]

    def _hear_all(self, column: Column, family: Family) -> None:
        """Each gate hears of its term."""
        if not family.size:
            return
        if isinstance(column, int):
            for gate in range(family.first, family.first + family.size):
                self._hear(column, gate)
        elif isinstance(block := self._over[column[0]], LaneTerms):
            block.heard_by.append((family.first, by_lane(block, column)))
        else:
            for gate, term in enumerate(column, family.first):
                self._hear(term, gate)

    def _view(self, column: Column, family: Family) -> None:
        """Each gate looks at the term of its trouble."""
        if not family.size:
            return
        if isinstance(column, int):
            self._viewed_by.setdefault(column, []).extend(range(family.first, family.first + family.size))
        elif isinstance(block := self._over[column[0]], LaneTerms):
            block.viewed_by.append((family.first, by_lane(block, column)))
        else:
            for gate, term in enumerate(column, family.first):
                self._viewed_by.setdefault(term, []).append(gate)

    def _hear(self, term: int, listener: int) -> None:
        heard_by = self._heard_by[term]
        if heard_by:
            heard_by.append(listener)
        else:
            self._heard_by[term] = [listener]

    def _listeners(self, term: int) -> Iterable[int]:
        over = self._over[term]
        if not isinstance(over, LaneTerms):
            return self._heard_by[term]
        lane = term - over.first
        every = [first + place for first, inverse in over.heard_by for place in inverse.places(lane)]
        return every + self._heard_by[term]

    def _term(self, target: Target, mask: int, strict: bool, codes: Sequence[int], taints: Sequence[int]) -> int:
        known = self._by_identity.get((id(target), mask, strict))
        if known is None:
            known = self._terms.get((target, mask, strict))
        if known is not None:
            return known
        jobs: Sequence[int] = (
            self._graph.jobs_of(target.specs[0])
            if len(target.specs) == 1 and not target.jobs
            else list(self._graph.jobs_in(target))
        )
        term = self._terms[target, mask, strict] = self._by_identity[id(target), mask, strict] = self._new_terms(
            target, [len(jobs)], mask, strict
        )
        by_spec, by_job = (
            (self._trouble, self._trouble_job) if mask == _TROUBLE else (self._counting, self._counting_job)
        )
        for spec in target.specs:
            by_spec.setdefault(spec, []).append(term)
        for job in target.jobs:
            by_job.setdefault(job, []).append(term)
        for job in jobs:
            self._count_known(term, job, codes, taints)
        self._status[term] = self._status_now(term)
        return term

    def _lane_block(
        self, lanes: Lanes, mask: int, strict: bool, codes: Sequence[int], taints: Sequence[int]
    ) -> LaneTerms:
        """A term for each lane."""
        known = self._lane_terms.get((id(lanes), mask, strict))
        if known is not None:
            return known
        block = self._lane_terms[id(lanes), mask, strict] = LaneTerms(len(self._good), lanes)
        self._new_terms(block, lanes.sizes, mask, strict)
        by_spec = self._trouble_lanes if mask == _TROUBLE else self._counting_lanes
        for spec, lane_of in lanes.lane_of.items():
            by_spec.setdefault(spec, []).append(block)
            jobs = self._graph.jobs_of(spec)
            if any(codes[jobs.start : jobs.stop]):
                for job, lane in zip(jobs, lane_of, strict=True):
                    if lane >= 0:
                        self._count_known(block.first + lane, job, codes, taints)
        for term in range(block.first, block.first + len(lanes.sizes)):
            self._status[term] = self._status_now(term)
        return block

    def _count_known(self, term: int, job: int, codes: Sequence[int], taints: Sequence[int]) -> None:
        """Count a job as it is when the term is made."""
        mask = self._mask[term]
        if mask == _TROUBLE:
            self._good[term] += taints[job] == TAINTED
            self._other[term] += taints[job] == CLEAN
        elif codes[job]:
            self._count(term, job, bool(mask >> codes[job] & 1), 1)

    def _term_over(self, columns: list[Column], family: Family) -> Column:
        """A lenient term over terms: one, or one for each gate of the family."""
        if all(isinstance(column, int) for column in columns):
            return self._one_over(tuple([column for column in columns if isinstance(column, int)]))
        found = array("q")
        for at in range(family.size):
            terms = dict.fromkeys(column if isinstance(column, int) else column[at] for column in columns)
            found.append(self._one_over(tuple(terms)))
        return found

    def _one_over(self, terms: tuple[int, ...]) -> int:
        term = self._new_terms(terms, [len(terms)], 0, False)
        for child in terms:
            self._good[term] += self._status[child] == MET
            self._other[term] += self._status[child] == DEAD
            self._hear(child, ~term)
        self._status[term] = self._status_now(term)
        return term

    def _new_terms(self, over: Over, sizes: list[int], mask: int, strict: bool) -> int:
        """Terms of these sizes; return the first."""
        first, count = len(self._good), len(sizes)
        self._good += [0] * count
        self._other += [0] * count
        self._size += sizes
        self._mask += [mask] * count
        self._strict += [strict] * count
        self._status += [WAITING] * count
        self._blamed += [-1] * count
        self._over += [over] * count
        self._heard_by += [_NOBODY] * count
        return first

    def _terms_counting(self, job: int, spec: int) -> Iterator[int]:
        yield from self._counting.get(spec, ())
        yield from self._counting_job.get(job, ())
        yield from self._terms_of_lanes(self._counting_lanes, job, spec)

    def _terms_of_lanes(self, by_spec: dict[int, list[LaneTerms]], job: int, spec: int) -> Iterator[int]:
        for block in by_spec.get(spec, ()):
            lane = block.lanes.lane_of[spec][job - self._graph.starts[spec]]
            if lane >= 0:
                yield block.first + lane

    def enter(self, job: int, spec: int, code: int) -> None:
        """The job is settled."""
        for term in self._terms_counting(job, spec):
            self._count(term, job, bool(self._mask[term] >> code & 1), 1)
            self._recheck(term)

    def enter_all(self, jobs: range, spec: int, code: int) -> None:
        """Jobs of one spec are settled, all with this code."""
        for term in self._counting.get(spec, ()):
            self._count(term, jobs[0], bool(self._mask[term] >> code & 1), len(jobs))
            self._recheck(term)
        for job, term in self._alone(jobs, spec, self._counting_job, self._counting_lanes):
            self._count(term, job, bool(self._mask[term] >> code & 1), 1)
            self._recheck(term)

    def mark_all(self, jobs: range, spec: int, taint: int) -> None:
        """The taint of jobs of one spec is known now."""
        every = ((term, len(jobs)) for term in self._trouble.get(spec, ()))
        alone = ((term, 1) for _, term in self._alone(jobs, spec, self._trouble_job, self._trouble_lanes))
        for term, count in chain(every, alone):
            self._good[term] += count * (taint == TAINTED)
            self._other[term] += count * (taint == CLEAN)
            self._recheck(term)

    def _alone(
        self, jobs: range, spec: int, by_job: dict[int, list[int]], by_spec: dict[int, list[LaneTerms]]
    ) -> Iterator[tuple[int, int]]:
        """Each job with each term that counts it and not all jobs of its spec."""
        for job in jobs if by_spec.get(spec) else sorted(job for job in by_job if job in jobs):
            for term in chain(by_job.get(job, ()), self._terms_of_lanes(by_spec, job, spec)):
                yield job, term

    def leave(self, job: int, spec: int, code: int) -> None:
        """The job, which was settled with this code, is not settled any more."""
        for term in self._terms_counting(job, spec):
            self._count(term, job, bool(self._mask[term] >> code & 1), -1)
            self._recheck(term)
            if self._blamed[term] == job:
                self._blamed[term] = -1
                self._drop_cause(term)

    def mark(self, job: int, spec: int, before: int, after: int) -> None:
        """The job's taint changed."""
        some = self._trouble.get(spec, ()), self._trouble_job.get(job, ())
        for term in chain(*some, self._terms_of_lanes(self._trouble_lanes, job, spec)):
            self._good[term] += (after == TAINTED) - (before == TAINTED)
            self._other[term] += (after == CLEAN) - (before == CLEAN)
            self._recheck(term)

    def _count(self, term: int, job: int, is_good: bool, by: int) -> None:
        if is_good:
            self._good[term] += by
        else:
            self._other[term] += by
            if by > 0 and self._blamed[term] < 0:
                self._blamed[term] = job

    def _status_now(self, term: int) -> int:
        if self._strict[term]:
            return DEAD if self._other[term] else MET if self._good[term] == self._size[term] else WAITING
        return MET if self._good[term] else DEAD if self._other[term] == self._size[term] else WAITING

    def _recheck(self, term: int) -> None:
        before, after = self._status[term], self._status_now(term)
        if before == after:
            return
        self._status[term] = after
        waits, dead = (before == MET) - (after == MET), (after == DEAD) - (before == DEAD)
        for listener in self._listeners(term):
            if listener < 0:
                self._good[~listener] -= waits
                self._other[~listener] += dead
                self._recheck(~listener)  # terms over terms are one deep
                continue
            status = self.status(listener)
            self._waits[listener] += waits
            self._dead[listener] += dead
            if dead > 0 and self._cause[listener] < 0:
                self._cause[listener] = term
            elif dead < 0 and self._cause[listener] == term:
                self._cause[listener] = -1
            if status != self.status(listener) or (self._dead[listener] and self._cause[listener] < 0):
                self.changed.append(listener)
        self.views += self._viewed_by.get(term, ())
        over = self._over[term]
        if isinstance(over, LaneTerms):
            for first, inverse in over.viewed_by:
                self.views += [first + place for place in inverse.places(term - over.first)]

    def _drop_cause(self, term: int) -> None:
        """The term may still be dead, but not because of the job that its gates name."""
        if self._status[term] != DEAD:
            return
        for listener in self._listeners(term):
            if listener < 0:
                self._drop_cause(~listener)
            elif self._cause[listener] == term:
                self._cause[listener] = -1
                self.changed.append(listener)

    def status(self, gate: int) -> int:
        return DEAD if self._dead[gate] else WAITING if self._waits[gate] else MET

    def is_skipping(self, gate: int) -> bool:
        """Whether the gate is dead for the cause that its skipped jobs name."""
        return self._dead[gate] > 0 and self._cause[gate] >= 0

    def taint(self, gate: int) -> int:
        """The taint of a job that is skipped by this gate."""
        return self._status[self._trouble_of(gate)]  # met: tainted; dead: clean

    def cause(self, gate: int, codes: Sequence[int]) -> tuple[int, str]:
        """For a dead gate: the job that decided it (or -1: nothing failed), and the need's text as it was written."""
        if self._cause[gate] < 0:
            self._cause[gate] = next(term for term in self._terms_of(gate) if self._status[term] == DEAD)
        term = self._cause[gate]
        if term == self._trouble_of(gate):
            return -1, ""
        while isinstance(over := self._over[term], tuple):
            term = over[0]
        if not self._strict[term]:  # it had to fail: name what did not even succeed, or the need as a whole
            jobs = list(self._jobs_in(over, term))
            odd = next((job for job in jobs if codes[job] != CODES[State.COMPLETED]), -1)
            return (odd, "") if odd >= 0 else (jobs[0] if jobs else -1, self._text(gate, term))
        if self._blamed[term] < 0:
            mask = self._mask[term]
            jobs_in = self._jobs_in(over, term)
            self._blamed[term] = next(job for job in jobs_in if codes[job] and not mask >> codes[job] & 1)
        return self._blamed[term], ""

    def _jobs_in(self, over: Target | LaneTerms, term: int) -> Iterable[int]:
        if isinstance(over, LaneTerms):
            return over.lanes.jobs(term - over.first, self._graph.starts)
        return self._graph.jobs_in(over)

    def _text(self, gate: int, leaf: int) -> str:
        return next(text for text, term in self._needs_of(gate) if term == leaf)

    def waiting_texts(self, gate: int) -> list[str]:
        """The needs that are not yet decided, as they were written, with the values of the gate's members."""
        return list(dict.fromkeys(text for text, term in self._needs_of(gate) if self._status[term] == WAITING))

    def _needs_of(self, gate: int) -> Iterator[tuple[str, int]]:
        """Each need and its term."""
        family = self._family[gate]
        at = family.specs[0]
        needs = zip(texts_of(self._graph.specs[at].needs), self._graph.groups[at].targets, family.leaves, strict=True)
        for text, target, column in needs:
            if isinstance(target, Link) and not isinstance(column, int):
                member = self._graph.member(next(iter(self.jobs_of(gate))))
                yield fill(target.text, dict(member.values)), column[gate - family.first]
            elif isinstance(column, int):
                yield text, column
