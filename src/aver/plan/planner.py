"""What may start, what is skipped, and what comes back: the planner of one run.

Pure: events in, instructions out; no clock, no IO, the same answer every time. Jobs are numbered
from 0 in order of expansion. What always holds between two calls:

- a job is started only when its needs are settled as it asks, and at that moment, never in waves;
- a job is SKIPPED as soon as, and only while, its needs can't be settled as it asks any more;
- nothing depends on the order in which needs settled but the need that a skip names (the first);
- `restore` with the states so far gives a plan that goes on as if nothing had happened.

Failure edges, and `if: failure`, mean FAILED, OUT_OF_MEMORY, TIMEOUT, NODE_FAIL, BOOT_FAIL,
PREEMPTED and DEADLINE: somebody's cancel is no failure, and of UNVERIFIED nobody knows. A
failure edge on many jobs is met by the first that fails. `if: always` and `if: failure` wait
for all needs and take no notice of their edges. A started job is never called back: when one
of its needs is reopened later, `below` says which jobs a caller may want to reopen with it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from aver.judge.run import WORST_FIRST
from aver.model.job import Condition, FlowSpec
from aver.model.reasons import CONDITION_NOT_MET, need_reason
from aver.model.states import ACTIVE, State
from aver.plan.codes import CODES, FAILURES, SKIPPED, STATES
from aver.plan.gates import CLEAN, DEAD, MET, TAINTED, UNKNOWN, Gates
from aver.plan.graph import Graph
from aver.plan.instructions import Cancel, CancelAll, Instruction, RunCancel, Skip, SkipAll, Start, Unskip

__all__ = ["Cancel", "CancelAll", "Instruction", "Plan", "RunCancel", "Skip", "SkipAll", "Start", "Unskip"]

MANY = 32  # jobs in a row that end alike are told as one

_CANCELLED = CODES[State.CANCELLED]
_MARKS_0 = re.compile(rb"\0+")
_TAINT_OF = [UNKNOWN, *(TAINTED if state in FAILURES else CLEAN for state in CODES)]


# The job that a skip names (-1: none), its code, and the need's text if that is named instead.
Blame = tuple[int, int, str]


class Plan:
    """The plan of one run. Ask `begin` or `restore` first, once; then tell it what happens."""

    def __init__(self, flow: FlowSpec) -> None:
        """Raise GraphError (a ValueError) with every mistake in the flow's needs."""
        self._graph = Graph(FlowSpec(flow.name, ()))
        self._gates = Gates(self._graph)
        self._codes = bytearray()
        self._started = bytearray()
        self._taints = bytearray()
        self._count_of = [0] * len(STATES)
        self._blames: dict[int, Blame] = {}  # by gate, while its jobs are skipped
        self._promoted: set[int] = set()
        self._foreground_left = 0
        self._run_cancel = RunCancel.NO
        self._cancel_at = 0  # of a cancelled run: jobs from here on are left to `cancel_more`
        self._has_begun = False
        self._out: list[Instruction] = []  # of this event
        self._was: dict[int, Blame | None] = {}  # jobs that were skipped before this event and were taken back
        self.add(flow)

    # What happens

    def begin(self) -> list[Instruction]:
        """A new run: which jobs may start at once."""
        return self.restore([None] * self._graph.count)

    def restore(
        self, states: Sequence[State | None], run_cancel: RunCancel = RunCancel.NO, begun: Sequence[int] = (),
        most: int | None = None,
    ) -> list[Instruction]:  # fmt: skip
        """After a restart: the states of all jobs, generated ones included; None or PENDING is not started.

        Gives what is outstanding: the same as would have been given without the restart, and Start once more for
        jobs that were given it and are still PENDING. `begun` and `most` are as of `cancel_run`; jobs that have begun
        are given nothing.
        """
        if self._has_begun:
            raise ValueError("a plan that has begun can't be restored; make a new one")
        if len(states) != self._graph.count:
            raise ValueError(f"{len(states)} states for {self._graph.count} jobs")
        self._has_begun = True
        self._run_cancel = run_cancel
        for job, state in enumerate(states):
            if state is not None and state in CODES:
                self._enter(job, CODES[state])
            elif state in ACTIVE:
                self._started[job] = 1
        for job in begun:
            self._started[job] = not self._codes[job]
        self._gates.changed.clear()
        stale: list[int] = []
        for gate in range(self._gates.count) if SKIPPED in self._codes else ():
            skipped = self._skipped_by(gate)
            if skipped and self._gates.status(gate) == DEAD:
                self._blames[gate] = self._blame(gate)
            else:
                stale += skipped
        self._retract(stale)
        if run_cancel is not RunCancel.NO:
            self._cancel_next(None, most)
        for gate in range(self._gates.count):
            self._place_all(gate)
        self._advance()
        self._place(self._was)
        return self._told()

    def settle(self, job: int, state: State) -> list[Instruction]:
        """The job is settled in this state, with no retry due; for a settled job: its verdict is corrected to it."""
        code = CODES.get(state, SKIPPED)
        if code == SKIPPED:
            raise ValueError(f"a job can't be settled from outside as {state}")
        if self._codes[job] == code:
            return []
        self._retract([job])
        self._was.pop(job, None)
        self._enter(job, code)
        self._advance()
        self._place(self._was)
        return self._told()

    def reopen_all(self, jobs: Iterable[int]) -> list[Instruction]:
        """The settled jobs are to run again. The run counts as cancelled no longer.

        Gives Start (or Skip) for those whose needs are settled, and Unskip for what comes back below them; none of them
        starts for needs that are reopened with it.
        """
        asked = dict.fromkeys(job for job in jobs if self._codes[job])
        self._run_cancel = RunCancel.NO
        self._cancel_at = 0
        self._retract(asked)
        self._was.update({job: None for job in asked if job in self._was})
        self._place({**asked, **self._was})
        return self._told()

    def cancel_run(
        self, how: RunCancel, begun: Sequence[int] | None = None, most: int | None = None
    ) -> list[Instruction]:
        """Cancel all jobs that have not begun, or all of them but the finishers. Twice is harmless.

        `begun`, in order, are the caller's: it ends them and settles them; None: all that were given Start. Of more
        than `most` jobs the rest is left to `cancel_more`; nothing of them is started meanwhile.
        """
        if how is RunCancel.NOW or self._run_cancel is RunCancel.NO:
            self._run_cancel = how
        self._cancel_at = 0
        return self.cancel_more(begun, most)

    @property
    def is_cancelling(self) -> bool:
        """Whether jobs are left to `cancel_more`."""
        return self._run_cancel is not RunCancel.NO and self._cancel_at < self._graph.count

    def cancel_more(self, begun: Sequence[int] | None = None, most: int | None = None) -> list[Instruction]:
        """Go on with the cancellation of the run, until `is_cancelling` says that it is done."""
        self._cancel_next(begun, most)
        self._advance()
        return self._told()

    def cancel(self, job: int) -> list[Instruction]:
        """A person cancels a job that does not run; a settled one stays as it is."""
        if self._codes[job]:
            return []
        self._cancel(job)
        self._advance()
        return self._told()

    def add(self, flow: FlowSpec) -> list[Instruction]:
        """Append generated jobs. Raise GraphError (a ValueError) with every mistake, and change nothing.

        Add before the generating job is settled, so that the run is not settled in between.
        """
        first, old_count = len(self._graph.specs), self._graph.count
        is_cancelling = self.is_cancelling
        self._graph.extend(flow)
        if not is_cancelling:
            self._cancel_at = self._graph.count
        more = bytes(self._graph.count - len(self._codes))
        self._codes += more
        self._started += more
        self._taints += more
        self._gates.extend(self._codes, self._taints)
        self._promote(first)
        if self._has_begun:
            self._place(range(old_count, self._graph.count))
        return self._told()

    # What is so

    @property
    def count(self) -> int:
        return self._graph.count

    @property
    def settled_count(self) -> int:
        return sum(self._count_of)

    @property
    def is_settled(self) -> bool:
        return self.settled_count == self._graph.count

    @property
    def is_foreground_settled(self) -> bool:
        return self._foreground_left == 0

    @property
    def promoted(self) -> frozenset[str]:
        """Background jobs (as named in the flow) that a foreground job needs, directly or through others."""
        return frozenset(self._graph.specs[spec].name for spec in self._promoted)

    def is_foreground(self, job: int) -> bool:
        return self._is_foreground_spec(self._graph.spec_of(job))

    def is_finisher(self, job: int) -> bool:
        return self._graph.specs[self._graph.spec_of(job)].condition is Condition.ALWAYS

    def jobs_by_spec(self) -> Iterator[range]:
        return map(self._graph.jobs_of, range(len(self._graph.specs)))

    def name(self, job: int) -> str:
        return self._graph.name(job)

    def state(self, job: int) -> State | None:
        """The state in which the job is settled, or None."""
        return STATES[self._codes[job]]

    def is_started(self, job: int) -> bool:
        """Start was given for it, and it is not settled."""
        return bool(self._started[job])

    def run_state(self) -> State | None:
        """The state of the whole run, once all is settled: the worst, or COMPLETED. Skipped jobs add nothing."""
        if not self.is_settled:
            return None
        return next((state for state in WORST_FIRST if self._count_of[CODES[state]]), State.COMPLETED)

    def waits_for(self, job: int, cap: int = 8) -> list[str]:
        """The needs that a pending job waits for, as its flow names them; at most `cap`."""
        if self._codes[job] or self._started[job]:
            return []
        return self._gates.waiting_texts(self._gate(job))[:cap]

    def below(self, job: int) -> list[int]:
        """All jobs that need this one, directly or through others."""
        return self._graph.below(job)

    def below_all(self, jobs: Iterable[int]) -> list[int]:
        """All jobs that need one of these, directly or through others."""
        return self._graph.below_all(jobs)

    # How it is worked out: first everything that no longer holds is taken back, then everything that follows is done

    def _retract(self, jobs: Iterable[int]) -> None:
        """Make the jobs unsettled, and all that were skipped for them. `_was` keeps which were skipped, and why."""
        waiting = list(jobs)
        while waiting:
            job = waiting.pop()
            code = self._codes[job]
            if not code:
                continue
            spec = self._graph.spec_of(job)
            if code == SKIPPED:
                self._was[job] = self._blames.get(self._gates.gate_of(job, spec))
            self._codes[job] = self._started[job] = 0
            self._count_of[code] -= 1
            self._foreground_left += self._is_foreground_spec(spec)
            self._gates.leave(job, spec, code)
            self._mark(job, spec, UNKNOWN)
            self._follow_views()
            changed, self._gates.changed = self._gates.changed, []
            for gate in changed:
                if not self._gates.is_skipping(gate):
                    waiting += self._skipped_by(gate)

    def _enter(self, job: int, code: int) -> None:
        spec = self._graph.spec_of(job)
        self._codes[job] = code
        self._started[job] = 0
        self._count_of[code] += 1
        self._foreground_left -= self._is_foreground_spec(spec)
        self._gates.enter(job, spec, code)
        taint = self._gates.taint(self._gates.gate_of(job, spec)) if code == SKIPPED else _TAINT_OF[code]
        self._mark(job, spec, taint)
        self._follow_views()

    def _mark(self, job: int, spec: int, taint: int) -> None:
        before = self._taints[job]
        if before != taint:
            self._taints[job] = taint
            self._gates.mark(job, spec, before, taint)

    def _follow_views(self) -> None:
        """Skipped jobs are tainted or clean as their needs are."""
        views = self._gates.views
        if not self._count_of[SKIPPED]:
            views.clear()
        while views:
            gate = views.pop()
            taint = self._gates.taint(gate)
            for job in self._skipped_by(gate):
                self._mark(job, self._graph.spec_of(job), taint)

    def _skipped_by(self, gate: int) -> list[int]:
        codes = self._codes
        return [job for job in self._gates.jobs_of(gate) if codes[job] == SKIPPED]

    def _advance(self) -> None:
        """Follow every gate that changed, until none does."""
        queue: deque[int] = deque()
        while True:
            queue += self._gates.changed
            self._gates.changed.clear()
            if not queue:
                return
            self._place_all(queue.popleft())

    def _place(self, jobs: Iterable[int]) -> None:
        for job in jobs:
            spec = self._graph.spec_of(job)
            self._place_one(job, self._gates.gate_of(job, spec), self._graph.specs[spec].condition)
        self._advance()
        for job in [job for job in self._was if self._comes_back_cancelled(job)]:  # found before any is cancelled
            self._cancel(job)
        self._advance()

    def _place_all(self, gate: int) -> None:
        if self._gates.status(gate) not in (MET, DEAD) and self._run_cancel is RunCancel.NO:
            return
        condition = self._gates.condition(gate)
        if self._is_cancelled(condition):
            if self.is_cancelling:
                return
        elif self._gates.status(gate) == DEAD and not self._was:
            self._skip_rows(gate)
        for job in self._gates.jobs_of(gate):
            self._place_one(job, gate, condition)

    def _skip_rows(self, gate: int) -> None:
        """Skip jobs of a dead gate that are many in a row."""
        jobs = self._gates.jobs_of(gate)
        if not isinstance(jobs, range) or len(jobs) < MANY:
            return
        for row in _unmarked(self._codes, jobs):
            for part in _unmarked(self._started, row):
                if len(part) >= MANY:
                    blame = self._blames[gate] = self._blame(gate)
                    skip = self._skip(part[0], blame)
                    self._out.append(SkipAll(part[0], part[-1], skip.reason, skip.detail))
                    self._enter_all(part, SKIPPED)

    def _cancel_next(self, begun: Sequence[int] | None, most: int | None) -> None:
        """Cancel jobs from where it was left on."""
        left = self._graph.count if most is None else most
        while self._cancel_at < self._graph.count and left > 0:
            spec = self._graph.spec_of(self._cancel_at)
            end = self._graph.jobs_of(spec).stop
            is_cancelled = self._is_cancelled(self._graph.specs[spec].condition)
            row = next(_unmarked(self._codes, range(self._cancel_at, end)), None) if is_cancelled else None
            if row is None:
                self._cancel_at = end
                continue
            row = row[:left]
            for part in _unmarked(self._started, row) if begun is None else _between(begun, row):
                self._cancel_all(part)
                left -= len(part)
            self._cancel_at = row.stop

    def _cancel_all(self, jobs: range) -> None:
        """Cancel jobs of one spec that have not begun."""
        if len(jobs) >= MANY:
            self._out.append(CancelAll(jobs[0], jobs[-1]))
        else:
            self._out += map(Cancel, jobs)
        self._enter_all(jobs, _CANCELLED)

    def _enter_all(self, jobs: range, code: int) -> None:
        """`_enter` jobs of one spec and one gate that are not settled; of cancelled ones the gate is no matter."""
        spec, count = self._graph.spec_of(jobs[0]), len(jobs)
        self._codes[jobs.start : jobs.stop] = bytes([code]) * count
        self._started[jobs.start : jobs.stop] = bytes(count)
        self._count_of[code] += count
        self._foreground_left -= count * self._is_foreground_spec(spec)
        self._gates.enter_all(jobs, spec, code)
        taint = self._gates.taint(self._gates.gate_of(jobs[0], spec)) if code == SKIPPED else _TAINT_OF[code]
        if taint != UNKNOWN:
            self._taints[jobs.start : jobs.stop] = bytes([taint]) * count
            self._gates.mark_all(jobs, spec, taint)
        self._follow_views()

    def _place_one(self, job: int, gate: int, condition: Condition) -> None:
        """Start, skip or cancel a job that is neither started nor settled, if that is certain by now."""
        if self._codes[job] or self._started[job]:
            return
        status = self._gates.status(gate)
        if self._is_cancelled(condition) and job not in self._was:
            if not self.is_cancelling:
                self._cancel(job)
        elif status == DEAD:
            blame = self._blames[gate] = self._blame(gate)
            self._out.append(self._skip(job, blame))
            self._enter(job, SKIPPED)
        elif status == MET and not self._is_cancelled(condition):
            self._out.append(Start(job))
            self._started[job] = 1

    def _cancel(self, job: int) -> None:
        self._out.append(Cancel(job))
        self._enter(job, _CANCELLED)

    def _comes_back_cancelled(self, job: int) -> bool:
        """Whether a job that was skipped before the run was cancelled has lost the cause of its skip."""
        spec = self._graph.spec_of(job)
        return not self._codes[job] and self._is_cancelled(self._graph.specs[spec].condition)

    def _is_cancelled(self, condition: Condition) -> bool:
        match self._run_cancel:
            case RunCancel.NO:
                return False
            case RunCancel.FINISHERS_RUN:
                return condition is not Condition.ALWAYS
            case RunCancel.NOW:
                return True

    def _blame(self, gate: int) -> Blame:
        job, text = self._gates.cause(gate, self._codes)
        return job, self._codes[job] if job >= 0 else 0, text

    def _skip(self, job: int, blame: Blame) -> Skip:
        need, code, text = blame
        state = STATES[code]
        if state is None:
            return Skip(job, CONDITION_NOT_MET, "nothing that it needs failed")
        name = text or self._graph.name(need)
        reason = need_reason(name, state)
        if state is State.COMPLETED:
            detail = f"{name} is COMPLETED, and was to end otherwise"
        else:
            detail = f"{name}, which it needs, is {state}"
        return Skip(job, reason, detail)

    def _told(self) -> list[Instruction]:
        """The instructions of this event, without what only undoes itself: a job that is skipped as before."""
        out, self._out = self._out, []
        was, self._was = self._was, {}
        if not was:
            return out
        back: list[Instruction] = [Unskip(job) for job in sorted(was) if not self._codes[job]]
        return back + [
            one for one in out if not (isinstance(one, Skip) and was.get(one.job) == self._blames[self._gate(one.job)])
        ]

    def _gate(self, job: int) -> int:
        return self._gates.gate_of(job, self._graph.spec_of(job))

    # Foreground and background

    def _is_foreground_spec(self, spec: int) -> bool:
        return not self._graph.specs[spec].background or spec in self._promoted

    def _promote(self, first: int) -> None:
        """Count the new foreground jobs, and the background jobs that they need, old ones included."""
        waiting: list[int] = []
        for spec in range(first, len(self._graph.specs)):
            if not self._graph.specs[spec].background:
                self._foreground_left += len(self._graph.jobs_of(spec))
                waiting += self._graph.above(spec)
        while waiting:
            spec = waiting.pop()
            if not self._is_foreground_spec(spec):
                self._promoted.add(spec)
                self._foreground_left += sum(1 for job in self._graph.jobs_of(spec) if not self._codes[job])
                waiting += self._graph.above(spec)


def _unmarked(marks: bytearray, jobs: range) -> Iterator[range]:
    """Rows of jobs whose mark is 0, as long as they are."""
    at = jobs.start
    while (found := _MARKS_0.search(marks, at, jobs.stop)) is not None:
        at = found.end()
        yield range(found.start(), at)


def _between(kept: Sequence[int], jobs: range) -> Iterator[range]:
    """The rows of jobs that are left without those that are kept, which are in order."""
    start = jobs.start
    for job in kept[bisect_left(kept, jobs.start) : bisect_left(kept, jobs.stop)]:
        if start < job:
            yield range(start, job)
        start = job + 1
    if start < jobs.stop:
        yield range(start, jobs.stop)
