"""The runs that are not settled, as the coordinator holds them in memory.

All of it can be made again from the store: nothing is here that a restart would lose.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from aver.engines.api import Heard
from aver.model.evidence import Evidence, Rules, Verdict
from aver.model.job import Allocation, FlowSpec, JobSpec, Request, Submission
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.plan.planner import Plan
from aver.plan.retry import AttemptSummary


@dataclass(slots=True)
class LiveAttempt:
    """An attempt that is planned or runs."""

    run: int
    job: int  # its number
    index: int  # its place in the run
    attempt: int
    key: str
    request: Request
    state: State = State.PENDING
    evidence: list[Evidence] = field(default_factory=list)
    is_durable: bool = False  # its intent is committed
    wants_start: bool = False  # it has room and waits only for that
    is_dispatched: bool = False
    is_suspended: bool = False
    due_s: float | None = None  # by the monotonic clock: when its limit passes, as its witness says
    is_over_time: bool = False  # its witness is ending it because of its limit
    cancel_asked: bool = False
    engine: str = "local"
    goes_on_from: str = ""  # the attempt before it, of which the cluster made it by itself
    shown_reason: str = ""  # the last one that its engine gave
    held_text: str = ""  # the sentence that came with it, where it was held back
    node: str = ""
    requeue: str = ""  # a person asked for another attempt: `requeue`, or `requeuehold` to be held then
    started_at: float | None = None
    gpus: tuple[int, ...] = ()
    has_gpus: bool = False  # which ones is written down
    streams: tuple[int, ...] = ()  # descriptors for its standard streams, where its submitter hands them over
    parked: tuple[Heard, Verdict] | None = None  # its script has ended, its steps have not


@dataclass(frozen=True, slots=True)
class Segment:
    """Jobs that came together: the flow itself, or a batch that a job generated."""

    first_job: int
    first_index: int
    first_spec: int
    flow: FlowSpec
    index: FlowIndex
    made_by: int | None = None  # the number of the job that generated it


class LiveRun:
    """One run: its plan, and the numbers of its jobs."""

    def __init__(self, number: int, first_job: int, submission: Submission) -> None:
        self.number = number
        self.submission = submission
        self.plan = Plan(submission.flow)
        self.segments = [Segment(first_job, 0, 0, submission.flow, FlowIndex(submission.flow))]
        self.state = State.PENDING
        self.round = 1
        self.history: dict[int, list[AttemptSummary]] = {}  # by index: settled attempts, where there is a rule
        self.attempts: dict[int, int] = {}  # by index: how many so far
        self.requests: dict[int, Request] = {}  # by index: what a retry asks for instead
        self.held: set[int] = set()
        self.priorities: dict[int, int] = {}  # by index: what a person asked for instead
        self.altered: dict[int, JobSpec] = {}  # by index: as a person changed it while it waited
        self.retries_used = 0  # of the budget, by all jobs
        self._retried: dict[int, int] = {}  # by index: its share
        self.fallback_completes = False
        self.streams: tuple[int, ...] = ()  # its submitter's, until its job starts
        self._last_member: tuple[int, str, tuple[tuple[str, str], ...]] = (-1, "", ())
        self.extra: list[Allocation] = []  # that persons asked for, beside its submission's
        self.sealed: dict[str, str] = {}  # environment values by their digests, once read

    @property
    def is_single(self) -> bool:
        return self.submission.flow.is_single

    @property
    def has_holds(self) -> bool:
        return any(spec.hold for spec in self.submission.flow.jobs)

    @property
    def job_count(self) -> int:
        last = self.segments[-1]
        return last.first_index + last.index.count

    def add_segment(self, first_job: int, flow: FlowSpec, made_by: int) -> Segment:
        last = self.segments[-1]
        first_spec = last.first_spec + len(last.flow.jobs)
        segment = Segment(first_job, self.job_count, first_spec, flow, FlowIndex(flow), made_by)
        self.segments.append(segment)
        return segment

    def with_flow(self, flow: FlowSpec) -> LiveRun:
        """The same run, all of it settled, with other definitions of its jobs; its plan has not begun."""
        run = LiveRun(self.number, self.segments[0].first_job, replace(self.submission, flow=flow))
        for segment in self.segments[1:]:
            assert segment.made_by is not None
            run.plan.add(segment.flow)
            run.add_segment(segment.first_job, segment.flow, segment.made_by)
        run.state, run.round = self.state, self.round
        run.extra = self.extra
        run.attempts, run.history = self.attempts, self.history
        run.retries_used, run._retried = self.retries_used, self._retried
        return run

    def begin_new_count(self, index: int) -> None:
        """A person has the job run again: its attempts so far count neither for its rule nor in the run's budget."""
        self.history.pop(index, None)
        self.retries_used -= self._retried.pop(index, 0)

    def count_retry(self, index: int) -> None:
        """The job takes one more of the run's retries."""
        self._retried[index] = self._retried.get(index, 0) + 1
        self.retries_used += 1

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

    def _member(self, index: int) -> tuple[int, str, tuple[tuple[str, str], ...]]:
        """Index, name and values; a job that starts is asked for its own several times in a row."""
        if self._last_member[0] != index:
            segment = self._segment(index)
            spec = self.spec(index)
            if spec.matrix is None:
                self._last_member = (index, spec.name, ())
            else:
                member = segment.index.member(index - segment.first_index)
                self._last_member = (index, spec.name + member.label, member.values)
        return self._last_member

    def request(self, index: int) -> Request:
        return self.requests.get(index) or self.spec(index).request

    def kill_wait_s(self, index: int, default_s: float) -> float:
        own_s = self.spec(index).kill_wait_s
        return default_s if own_s is None else own_s

    def engine(self, index: int) -> str:
        return self.spec(index).engine or self.submission.engine

    def host(self, index: int) -> str:
        """Of the cluster that the job is for; empty: this machine has its commands."""
        own = self.spec(index).host
        return self.submission.host if own is None else own

    def rules(self, index: int) -> Rules:
        spec = self.spec(index)
        codes = spec.checkpoint.codes if spec.checkpoint is not None else ()
        return Rules(codes, spec.oom_warns, self.fallback_completes)

    def _segment(self, index: int) -> Segment:
        if len(self.segments) == 1:
            return self.segments[0]
        return self.segments[bisect_right(self.segments, index, key=lambda segment: segment.first_index) - 1]
