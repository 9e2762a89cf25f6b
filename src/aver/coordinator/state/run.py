"""A run that is not settled, as the coordinator holds it in memory: its jobs' states, its plan, what persons changed.

`fold.apply` alone writes it, so that the stored events make it again. The plan is what follows from the jobs' states:
`moved` and `instructions` say what it has not been told yet and what it said that nobody has done yet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from aver.coordinator.state.attempt import StepTable
from aver.engines.api import Capabilities
from aver.model.evidence import Rules
from aver.model.job import Allocation, FlowSpec, JobSpec, Request, Submission
from aver.model.record import Record, replace
from aver.model.states import UNSETTLED, State
from aver.plan.matrix import FlowIndex
from aver.plan.planner import Instruction, Plan, RunCancel
from aver.plan.retry import AttemptSummary

FindCapabilities = Callable[[str], Capabilities]  # by the engine's name
SPARE = 1000  # numbers of runs that are gone, before a roster clears them away


class Segment(Record):
    """Jobs that came together: the flow itself, or a batch that a job generated."""

    first_job: int
    first_index: int
    first_spec: int
    flow: FlowSpec
    index: FlowIndex
    made_by: int | None = None  # the number of the job that generated it


class Wait(Record):
    """A wait of a job before its next attempt, by the wall clock."""

    since: float
    until: float


class LiveRun:
    """One run: its plan, and the numbers of its jobs."""

    def __init__(self, number: int, first_job: int, submission: Submission, capabilities_of: FindCapabilities) -> None:
        self.number = number
        self.submission = submission
        self._capabilities_of = capabilities_of
        self._usual = capabilities_of(submission.engine)  # of most jobs' engine
        self.plan = Plan(submission.flow)
        self.segments = [Segment(first_job, 0, 0, submission.flow, FlowIndex(submission.flow))]
        self.state = State.PENDING
        self.round = 1
        self.states: list[State] = [State.PENDING] * self.segments[0].index.count  # by index, as all below
        self.attempts: dict[int, int] = {}  # how many so far
        self.history: dict[int, list[AttemptSummary]] = {}  # attempts that count for the rule, while it is not settled
        self.requests: dict[int, Request] = {}  # what a retry or a person asks for instead
        self.due: dict[int, Wait] = {}  # another attempt is to be made, after this wait
        self.priorities: dict[int, int] = {}  # what a person asked for instead
        self.altered: dict[int, JobSpec] = {}  # as a person changed it while it waited
        self.held: set[int] = self._held_in(self.segments[0])
        self.cancelled = RunCancel.NO
        self.cancelled_by = ""  # who asked for that
        self.still_cancelled: set[int] = set()  # the cluster has started it again though its cancellation was asked
        self.retries_used = 0  # of the budget, by all jobs
        self._retried: dict[int, int] = {}  # its share
        self._retrying: set[int] = set()  # its last retry is counted and not made yet
        self.extra: list[Allocation] = []  # that persons asked for, beside its submission's
        self.has_begun = False  # volatile, as all below: whether the plan knows the jobs' states
        self.told_cancelled = RunCancel.NO  # what the plan knows of `cancelled`
        self.moved: list[int] = []  # jobs that settled or were reopened, and the plan does not know
        self.instructions: list[Instruction] = []  # that nobody has carried out
        self.usual_rules = Rules()
        self.streams: tuple[int, ...] = ()  # its submitter's, until its job starts
        self._last_member: tuple[int, str, tuple[tuple[str, str], ...]] = (-1, "", ())
        self.sealed: dict[str, str] = {}  # environment values by their digests, once read

    @property
    def is_single(self) -> bool:
        return self.submission.flow.is_single

    @property
    def job_count(self) -> int:
        last = self.segments[-1]
        return last.first_index + last.index.count

    def add_segment(self, first_job: int, flow: FlowSpec, made_by: int) -> Segment:
        last = self.segments[-1]
        first_spec = last.first_spec + len(last.flow.jobs)
        segment = Segment(first_job, self.job_count, first_spec, flow, FlowIndex(flow), made_by)
        self.segments.append(segment)
        self.states += [State.PENDING] * segment.index.count
        self.held |= self._held_in(segment)
        return segment

    def with_flow(self, flow: FlowSpec) -> LiveRun:
        """The same run, all of it settled, with other definitions of its jobs; its plan has not begun."""
        submission = replace(self.submission, flow=flow)
        run = LiveRun(self.number, self.segments[0].first_job, submission, self._capabilities_of)
        for segment in self.segments[1:]:
            assert segment.made_by is not None
            run.plan.add(segment.flow)
            run.add_segment(segment.first_job, segment.flow, segment.made_by)
        run.state, run.round, run.cancelled = self.state, self.round, self.cancelled
        run.cancelled_by = self.cancelled_by
        run.states, run.held = self.states, self.held
        run.extra, run.usual_rules = self.extra, self.usual_rules
        run.attempts, run.history = self.attempts, self.history
        run.retries_used, run._retried, run._retrying = self.retries_used, self._retried, self._retrying
        return run

    def begin_new_count(self, index: int) -> None:
        """A person has the job run again: its attempts so far count neither for its rule nor in the run's budget."""
        self.history.pop(index, None)
        self._retrying.discard(index)
        self.retries_used -= self._retried.pop(index, 0)

    def count_retry(self, index: int) -> None:
        """The job takes one more of the run's retries."""
        self._retried[index] = self._retried.get(index, 0) + 1
        self._retrying.add(index)
        self.retries_used += 1

    def note_planned(self, index: int, attempt: int) -> None:
        """The attempt that was due is planned."""
        self.attempts[index] = max(attempt, self.attempts.get(index, 0))
        self.due.pop(index, None)

    def note_given(self, index: int) -> None:
        """The engine has the attempt: a retry that was counted is made."""
        self._retrying.discard(index)

    def note_settled(self, index: int) -> None:
        """Forget holds, due times and history of the job; a retry that was not made is given back to the budget."""
        self.held.discard(index)
        self.still_cancelled.discard(index)
        self.history.pop(index, None)
        self.due.pop(index, None)
        if index in self._retrying:
            self._retrying.discard(index)
            self.retries_used -= 1
            self._retried[index] -= 1
            if not self._retried[index]:
                del self._retried[index]

    def note_all_settled(self, indices: range) -> None:
        """The same of many jobs."""
        kept = (self.held, self.still_cancelled, self.history, self.due, self._retrying)
        if any(kept):
            for index in indices:
                self.note_settled(index)

    def is_cancelled(self, index: int) -> bool:
        """Whether the job is cancelled with its run: if it has not begun, it never does."""
        match self.cancelled:
            case RunCancel.NO:
                return False
            case RunCancel.FINISHERS_RUN:
                return not self.plan.is_finisher(index)
            case RunCancel.NOW:
                return True

    def tell_plan(self, moved: Sequence[int]) -> list[Instruction]:
        """Reopen and settle in the plan what was reopened and settled; what it knows already changes nothing."""
        plan = self.plan
        instructions: list[Instruction] = []
        reopened = [index for index in moved if self.settled_state(index) is None and plan.state(index) is not None]
        if reopened:
            instructions += plan.reopen_all(reopened)
        for index in moved:
            state = self.settled_state(index)
            if state is not None and plan.state(index) is not state:
                instructions += plan.settle(index, state)
        return instructions

    def settled_state(self, index: int) -> State | None:
        """The state in which the job is settled, or None."""
        state = self.states[index]
        return None if state in UNSETTLED else state

    def job_number(self, index: int) -> int:
        segment = self._segment(index)
        return segment.first_job + index - segment.first_index

    def index_of(self, job: int) -> int | None:
        for segment in self.segments:
            if 0 <= job - segment.first_job < segment.index.count:
                return segment.first_index + job - segment.first_job
        return None

    def numbers(self) -> Iterator[int]:
        for segment in self.segments:
            yield from range(segment.first_job, segment.first_job + segment.index.count)

    def spec(self, index: int) -> JobSpec:
        if self.altered and index in self.altered:
            return self.altered[index]
        segment = self._segment(index)
        return segment.index.spec(index - segment.first_index)

    def spec_number(self, index: int) -> int:
        segment = self._segment(index)
        return segment.first_spec + segment.index.locate(index - segment.first_index)[0]

    def name(self, index: int) -> str:
        return self._member(index)[1]

    def values(self, index: int) -> tuple[tuple[str, str], ...]:
        return self._member(index)[2]

    def member_number(self, index: int) -> int | None:
        """Its number in its matrix, from 0; None without one."""
        segment = self._segment(index)
        return None if self.spec(index).matrix is None else segment.index.locate(index - segment.first_index)[1]

    def _member(self, index: int) -> tuple[int, str, tuple[tuple[str, str], ...]]:
        """Index, name and values; a job that starts is asked for its own several times in a row."""
        if self._last_member[0] != index:
            segment = self._segment(index)
            spec = self.spec(index)
            if spec.matrix is None:
                self._last_member = (index, spec.name, spec.params)
            else:
                member = segment.index.member(index - segment.first_index)
                self._last_member = (index, spec.name + member.label, member.values + spec.params)
        return self._last_member

    def request(self, index: int) -> Request:
        return self.requests.get(index) or self.spec(index).request

    def kill_wait_s(self, index: int, default_s: float) -> float:
        own_s = self.spec(index).kill_wait_s
        return default_s if own_s is None else own_s

    def engine(self, index: int) -> str:
        return self.spec(index).engine or self.submission.engine

    def can(self, index: int) -> Capabilities:
        """What the job's engine can do."""
        own = self.spec(index).engine
        return self._capabilities_of(own) if own else self._usual

    def host(self, index: int) -> str:
        """Of the cluster that the job is for; empty: this machine has its commands."""
        own = self.spec(index).host
        return self.submission.host if own is None else own

    def rules(self, index: int, request: Request | None = None, steps: StepTable | None = None) -> Rules:
        """How to judge an attempt of the job. `request` and `steps`: of that attempt, if they are known."""
        spec = self.spec(index)
        codes = spec.checkpoint.codes if spec.checkpoint is not None else ()
        usual = self.usual_rules
        limit_s, deadline_at = (None, None) if request is None else (request.time_s, spec.deadline_at)
        return Rules(
            codes, spec.oom_warns, usual.fallback_completes, bool(spec.outputs), limit_s, usual.overrun_fails,
            deadline_at, steps is not None and steps.is_warned,
        )  # fmt: skip

    def _held_in(self, segment: Segment) -> set[int]:
        """Jobs that are to be held from the start."""
        if not any(spec.hold for spec in segment.flow.jobs):
            return set()
        indices = range(segment.first_index, segment.first_index + segment.index.count)
        return {index for index in indices if self.spec(index).hold}

    def _segment(self, index: int) -> Segment:
        if len(self.segments) == 1:
            return self.segments[0]
        return self.segments[bisect_right(self.segments, index, key=lambda segment: segment.first_index) - 1]


class Roster:
    """The runs that the coordinator holds, found by their own number or by that of a job."""

    def __init__(self) -> None:
        self.runs: dict[int, LiveRun] = {}
        self._firsts: list[int] = []  # first numbers of segments, growing, and beside it whose they are
        self._owners: list[int] = []

    def add(self, run: LiveRun) -> None:
        self.runs[run.number] = run
        for segment in run.segments:
            self.note_numbers(segment.first_job, run.number)

    def note_numbers(self, first_job: int, run: int) -> None:
        """Jobs from this number on are of this run."""
        place = bisect_right(self._firsts, first_job)
        self._firsts.insert(place, first_job)
        self._owners.insert(place, run)

    def find(self, number: int) -> tuple[LiveRun, int | None] | None:
        """The run with this number (index None), or the run and index of the job with it."""
        run = self.runs.get(number)
        if run is not None:
            return run, 0 if run.is_single else None
        place = bisect_right(self._firsts, number) - 1
        run = self.runs.get(self._owners[place]) if place >= 0 else None
        index = run.index_of(number) if run is not None else None
        return (run, index) if run is not None and index is not None else None

    def remove(self, number: int) -> None:
        self.runs.pop(number, None)
        if len(self._firsts) > 2 * len(self.runs) + SPARE:
            pairs = zip(self._firsts, self._owners, strict=True)
            kept = [(first, owner) for first, owner in pairs if owner in self.runs]
            self._firsts = [first for first, _ in kept]
            self._owners = [owner for _, owner in kept]
