"""What follows an attempt's verdict: another attempt of its job, or the jobs that it generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aver.coordinator.live import LiveAttempt, LiveRun
from aver.coordinator.packers import LOCAL
from aver.core import reasons
from aver.core.events import JobMoved, JobsGenerated
from aver.core.evidence import Verdict
from aver.core.expand import FlowIndex
from aver.core.judge import COORDINATOR
from aver.core.model import FlowSpec
from aver.core.retry import AttemptSummary, Why, decide
from aver.core.states import State

if TYPE_CHECKING:
    from aver.coordinator.driver import Driver

REQUEUE_DELAY_S = 2.0  # whoever asks meanwhile sees that it was requeued


class GeneratedBatch(Exception):
    """What a job generated can't be used; the text says why."""


class Following:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.read_generated: Callable[[LiveRun, int], FlowSpec] = _no_generated  # set by the loop: a job's batch

    def again(self, run: LiveRun, attempt: LiveAttempt, verdict: Verdict, now: float) -> str | None:
        """Put the job down for another attempt if a person or its flow says so; return the pending reason."""
        if attempt.cancel_asked:
            return None
        asked = self._requeued(run, attempt, now)
        if asked is not None or verdict.state is State.COMPLETED:
            return asked
        return self._retried(run, attempt, verdict, now)

    def _requeued(self, run: LiveRun, attempt: LiveAttempt, now: float) -> str | None:
        if not attempt.requeue:
            return None
        if attempt.requeue == "requeuehold":
            run.held.add(attempt.index)
            return reasons.JOB_REQUEUED_HELD
        self._driver.at(now + REQUEUE_DELAY_S, "again", attempt.job)
        return reasons.BEGIN_TIME

    def _retried(self, run: LiveRun, attempt: LiveAttempt, verdict: Verdict, now: float) -> str | None:
        spec = run.spec(attempt.index)
        if spec.retry is None and spec.checkpoint is None and attempt.engine == LOCAL:
            return None
        history = run.history.setdefault(attempt.index, [])
        budget = run.submission.flow.retry_budget
        left = None if budget is None else max(0, budget - run.retries_used)
        again = decide(spec, history, verdict, left, attempt.request, attempt.engine != LOCAL)
        history.append(AttemptSummary(attempt.attempt, attempt.request, verdict))
        if again is None:
            return None
        if again.why is Why.RETRY:
            run.count_retry(attempt.index)
        run.requests[attempt.index] = again.request
        self._driver.at(now + again.delay_s, "again", attempt.job)
        return str(again.why)

    def add_generated(self, run: LiveRun, index: int, verdict: Verdict, now: float) -> State:
        """Add the jobs that a completion brought; the state that the job has then."""
        if verdict.state is not State.COMPLETED or run.spec(index).generates is None:
            return verdict.state
        job = run.job_number(index)
        try:
            trouble = self._generate(run, job, self.read_generated(run, index), now)
        except GeneratedBatch as error:
            trouble = str(error)
        if trouble is None:
            return verdict.state
        failed = Verdict(State.FAILED, verdict.exit, reasons.GENERATED_JOBS, True, COORDINATOR, (), trouble)
        self._driver.emit(JobMoved(now, run.number, job, State.FAILED, failed.reason, failed))
        return State.FAILED

    def _generate(self, run: LiveRun, job: int, flow: FlowSpec, now: float) -> str | None:
        """Add the jobs that a verified completion brought, all or none; return what is wrong with them."""
        before = [segment for segment in run.segments if segment.made_by == job]
        if before:
            if any(segment.flow.jobs == flow.jobs for segment in before):
                return None  # the same jobs as when it ran before: they are there
            return "it generated other jobs when it ran before; submit the flow as a new run"
        driver = self._driver
        first_job = driver.next_id
        try:
            instructions = run.plan.add(flow)
        except ValueError as error:
            return f"the jobs that it generated can't be added: {error}"
        run.add_segment(first_job, flow, job)
        driver.roster.note_numbers(first_job, run.number)
        driver.next_id = first_job + FlowIndex(flow).count
        driver.emit(JobsGenerated(now, run.number, job, first_job, flow))
        driver.obey(run, instructions, now)
        return None


def _no_generated(run: LiveRun, index: int) -> FlowSpec:
    raise GeneratedBatch("generated jobs can't be read here")
