"""Counters that say when the needs of a job are settled as required.

Pure, and only for `plan.planner`. A *term* counts the jobs of one need: how many are settled as
the need wants (`good`) and how many otherwise (`other`). A strict term is met when all are
good and dead when one is not. A lenient term is met when one is good and dead when none can
be; so is a term over terms, which stands for `any_of`. A *gate* is all terms of one `needs:`
with its `if:`. Specs with equal needs share a gate, and needs on the same jobs share a term,
so that 1,000 jobs that need 1,000 jobs cost 2,000 counts.

A second kind of term, the trouble term, counts jobs below a failure: a job is tainted when it
failed, or was skipped and one of its needs is tainted; it is clean when it is settled and can
no longer become tainted. `if: failure` is the lenient term over the trouble terms of its needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.model.job import Condition, JobSpec, Need, Outcome
from aver.model.states import SETTLED, State
from aver.plan.graph import Graph, Target, texts_of

WAITING, MET, DEAD = 0, 1, 2  # of terms and gates
UNKNOWN, TAINTED, CLEAN = 0, 1, 2  # of jobs

CODES: dict[State, int] = {state: code for code, state in enumerate((s for s in State if s in SETTLED), 1)}
STATES: tuple[State | None, ...] = (None, *CODES)  # by code; 0 is not settled
FAILURES = frozenset(
    {
        State.FAILED,
        State.OUT_OF_MEMORY,
        State.TIMEOUT,
        State.NODE_FAIL,
        State.BOOT_FAIL,
        State.PREEMPTED,
        State.DEADLINE,
    }
)
SKIPPED = CODES[State.SKIPPED]
_ANY = sum(1 << code for code in CODES.values())
_SUCCESS = 1 << CODES[State.COMPLETED]
_FAILURE = sum(1 << CODES[state] for state in FAILURES)
_NOBODY: list[int] = []  # shared, never changed
_TROUBLE = 0  # the mask of trouble terms: they count taint, not states


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
        self._over: list[Target | tuple[int, ...]] = []  # jobs, or the terms of an `any_of`
        self._heard_by: list[list[int]] = []  # gates, and terms over terms as ~term
        self._viewed_by: dict[int, list[int]] = {}  # the trouble of gates, to those gates
        self._terms: dict[tuple[Target, int, bool], int] = {}
        self._by_text: dict[tuple[str, int, bool], int] = {}  # the same, during one `extend`
        self._counting: dict[int, list[int]] = {}  # spec to the terms that count all its jobs
        self._counting_job: dict[int, list[int]] = {}  # job to the terms that count it alone
        self._trouble: dict[int, list[int]] = {}
        self._trouble_job: dict[int, list[int]] = {}
        self._known: dict[tuple[object, ...], int] = {}
        self.gate_of: list[int] = []  # by spec
        self.specs_of: list[list[int]] = []  # by gate
        self._gate_terms: list[tuple[int, ...]] = []
        self._gate_leaves: list[tuple[int, ...]] = []  # a term for each need, as written
        self._gate_trouble: list[int] = []
        self._waits: list[int] = []
        self._dead: list[int] = []
        self._cause: list[int] = []  # the dead term for which its jobs are skipped, or -1
        self.changed: list[int] = []  # gates whose status or cause changed
        self.views: list[int] = []  # gates whose trouble changed

    def extend(self, targets: dict[str, Target], codes: Sequence[int], taints: Sequence[int]) -> None:
        """Make the gates of the specs that the graph has and we have not."""
        for at in range(len(self.gate_of), len(self._graph.specs)):
            spec = self._graph.specs[at]
            key = (spec.condition, spec.needs.all_of, spec.needs.any_of)
            gate = self._known.get(key)
            if gate is None:
                gate = self._known[key] = self._make_gate(spec, targets, codes, taints)
            self.gate_of.append(gate)
            self.specs_of[gate].append(at)
        self._known.clear()  # the same glob may mean more jobs in the next flow
        self._by_text.clear()

    def _make_gate(self, spec: JobSpec, targets: dict[str, Target], codes: Sequence[int], taints: Sequence[int]) -> int:
        def leaf(need: Need) -> int:
            mask, strict = _wanted(need, spec.condition)
            return self._term(need.job, targets[need.job], mask, strict, codes, taints)

        def trouble(need: Need) -> int:
            return self._term(need.job, targets[need.job], _TROUBLE, False, codes, taints)

        needs = spec.needs
        every = [*needs.all_of, *(need for group in needs.any_of for need in group)]
        leaves = tuple(leaf(need) for need in every)
        troubles = tuple(dict.fromkeys(trouble(need) for need in every))
        view = troubles[0] if len(troubles) == 1 else self._term_over(troubles)
        match spec.condition:
            case Condition.NEEDS:
                groups = [
                    self._term_over(tuple(dict.fromkeys(leaf(need) for need in group)))
                    for group in needs.any_of
                    if group
                ]
                terms = (*leaves[: len(needs.all_of)], *groups)
            case Condition.ALWAYS:
                terms = leaves
            case Condition.FAILURE:
                terms = (*leaves, view)
        terms = tuple(dict.fromkeys(terms))
        gate = len(self.specs_of)
        self.specs_of.append([])
        self._gate_terms.append(terms)
        self._gate_leaves.append(leaves)
        self._gate_trouble.append(view)
        self._viewed_by.setdefault(view, []).append(gate)
        self._waits.append(sum(1 for term in terms if self._status[term] != MET))
        self._dead.append(sum(1 for term in terms if self._status[term] == DEAD))
        self._cause.append(next((term for term in terms if self._status[term] == DEAD), -1))
        for term in terms:
            self._hear(term, gate)
        return gate

    def _hear(self, term: int, listener: int) -> None:
        heard_by = self._heard_by[term]
        if heard_by:
            heard_by.append(listener)
        else:
            self._heard_by[term] = [listener]

    def _term(
        self, text: str, target: Target, mask: int, strict: bool, codes: Sequence[int], taints: Sequence[int]
    ) -> int:
        known = self._by_text.get((text, mask, strict))
        if known is None:
            known = self._terms.get((target, mask, strict))
        if known is not None:
            return known
        jobs: Sequence[int] = (
            self._graph.jobs_of(target.specs[0])
            if len(target.specs) == 1 and not target.jobs
            else list(self._graph.jobs_in(target))
        )
        term = self._new_term(target, len(jobs), mask, strict)
        self._terms[target, mask, strict] = self._by_text[text, mask, strict] = term
        by_spec, by_job = (
            (self._trouble, self._trouble_job) if mask == _TROUBLE else (self._counting, self._counting_job)
        )
        for spec in target.specs:
            by_spec.setdefault(spec, []).append(term)
        for job in target.jobs:
            by_job.setdefault(job, []).append(term)
        for job in jobs:
            if mask == _TROUBLE:
                self._good[term] += taints[job] == TAINTED
                self._other[term] += taints[job] == CLEAN
            elif codes[job]:
                self._count(term, job, bool(mask >> codes[job] & 1), 1)
        self._status[term] = self._status_now(term)
        return term

    def _term_over(self, terms: tuple[int, ...]) -> int:
        term = self._new_term(terms, len(terms), 0, False)
        for child in terms:
            self._good[term] += self._status[child] == MET
            self._other[term] += self._status[child] == DEAD
            self._hear(child, ~term)
        self._status[term] = self._status_now(term)
        return term

    def _new_term(self, over: Target | tuple[int, ...], size: int, mask: int, strict: bool) -> int:
        self._good.append(0)
        self._other.append(0)
        self._size.append(size)
        self._mask.append(mask)
        self._strict.append(strict)
        self._status.append(WAITING)
        self._blamed.append(-1)
        self._over.append(over)
        self._heard_by.append(_NOBODY)
        return len(self._good) - 1

    def enter(self, job: int, spec: int, code: int) -> None:
        """The job is settled."""
        for terms in (self._counting.get(spec, ()), self._counting_job.get(job, ())):
            for term in terms:
                self._count(term, job, bool(self._mask[term] >> code & 1), 1)
                self._recheck(term)

    def leave(self, job: int, spec: int, code: int) -> None:
        """The job, which was settled with this code, is not settled any more."""
        for terms in (self._counting.get(spec, ()), self._counting_job.get(job, ())):
            for term in terms:
                self._count(term, job, bool(self._mask[term] >> code & 1), -1)
                self._recheck(term)
                if self._blamed[term] == job:
                    self._blamed[term] = -1
                    self._drop_cause(term)

    def mark(self, job: int, spec: int, before: int, after: int) -> None:
        """The job's taint changed."""
        for terms in (self._trouble.get(spec, ()), self._trouble_job.get(job, ())):
            for term in terms:
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
        for listener in self._heard_by[term]:
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

    def _drop_cause(self, term: int) -> None:
        """The term may still be dead, but not because of the job that its gates name."""
        if self._status[term] != DEAD:
            return
        for listener in self._heard_by[term]:
            if listener < 0:
                self._drop_cause(~listener)
            elif self._cause[listener] == term:
                self._cause[listener] = -1
                self.changed.append(listener)

    @property
    def term_count(self) -> int:
        """How many counters there are: it grows with needs as written, not with pairs of jobs."""
        return len(self._good)

    def status(self, gate: int) -> int:
        return DEAD if self._dead[gate] else WAITING if self._waits[gate] else MET

    def is_skipping(self, gate: int) -> bool:
        """Whether the gate is dead for the cause that its skipped jobs name."""
        return self._dead[gate] > 0 and self._cause[gate] >= 0

    def taint(self, gate: int) -> int:
        """The taint of a job that is skipped by this gate."""
        return self._status[self._gate_trouble[gate]]  # met: tainted; dead: clean

    def cause(self, gate: int, codes: Sequence[int]) -> tuple[int, str]:
        """For a dead gate: the job that decided it (or -1: nothing failed), and the need's text as it was written."""
        if self._cause[gate] < 0:
            self._cause[gate] = next(term for term in self._gate_terms[gate] if self._status[term] == DEAD)
        term = self._cause[gate]
        if term == self._gate_trouble[gate]:
            return -1, ""
        over = self._over[term]
        while not isinstance(over, Target):
            term = over[0]
            over = self._over[term]
        if not self._strict[term]:  # it had to fail: name what did not even succeed, or the need as a whole
            jobs = list(self._graph.jobs_in(over))
            odd = next((job for job in jobs if codes[job] != CODES[State.COMPLETED]), -1)
            return (odd, "") if odd >= 0 else (jobs[0] if jobs else -1, self._text(gate, term))
        if self._blamed[term] < 0:
            mask = self._mask[term]
            jobs_in = self._graph.jobs_in(over)
            self._blamed[term] = next(job for job in jobs_in if codes[job] and not mask >> codes[job] & 1)
        return self._blamed[term], ""

    def _text(self, gate: int, leaf: int) -> str:
        texts = texts_of(self._graph.specs[self.specs_of[gate][0]].needs)
        return next(text for text, term in zip(texts, self._gate_leaves[gate], strict=True) if term == leaf)

    def waiting_texts(self, gate: int) -> list[str]:
        """The needs that are not yet decided, as they were written."""
        texts = texts_of(self._graph.specs[self.specs_of[gate][0]].needs)
        leaves = zip(texts, self._gate_leaves[gate], strict=True)
        return list(dict.fromkeys(text for text, term in leaves if self._status[term] == WAITING))


def _wanted(need: Need, condition: Condition) -> tuple[int, bool]:
    """The accepted states as a mask, and whether all jobs of the need must end so (else one is enough)."""
    if condition is not Condition.NEEDS:
        return _ANY, True
    if need.states:
        return sum(1 << CODES[state] for state in set(need.states) & SETTLED), True
    match need.outcome:
        case Outcome.SUCCESS:
            return _SUCCESS, True
        case Outcome.ANY:
            return _ANY, True
        case Outcome.FAILURE:
            return _FAILURE, False
