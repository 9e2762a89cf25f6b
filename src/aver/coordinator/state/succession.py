"""What follows an attempt's verdict: another attempt of its job, or the jobs that it generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aver.coordinator.state.live import LiveAttempt, LiveRun
from aver.engines.api import LOCAL
from aver.model import reasons
from aver.model.events import JobsGenerated
from aver.model.evidence import GeneratedRead, Verdict
from aver.model.job import FlowSpec
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.plan.retry import AttemptSummary, Why, decide

if TYPE_CHECKING:
    from aver.coordinator.state.machine import Driver

REQUEUE_DELAY_S = 2.0  # whoever asks meanwhile sees that it was requeued
LARGEST_RUN = 2_000_000
TakeGenerated = Callable[[FlowSpec | str, float], None]  # the batch or what is wrong with it, and the time
ReadGenerated = Callable[[LiveRun, int, TakeGenerated], None]


class Following:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.read_generated: ReadGenerated = _no_generated  # set by the loop, which reads aside

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

    def add_generated(self, run: LiveRun, index: int, found: FlowSpec | str, now: float) -> GeneratedRead:
        """Add the jobs that a completion brought, all or none; what there is to say of them to the judge."""
        problem = found if isinstance(found, str) else self._add(run, run.job_number(index), found, now)
        return GeneratedRead(now, problem)

    def _add(self, run: LiveRun, job: int, flow: FlowSpec, now: float) -> str:
        """Return what is wrong with them; empty: they are there."""
        before = [segment for segment in run.segments if segment.made_by == job]
        if before:
            if any(segment.flow.jobs == flow.jobs for segment in before):
                return ""  # the same jobs as when it ran before
            return "it generated other jobs when it ran before; submit the flow as a new run"
        driver = self._driver
        first_job = driver.next_id
        count = FlowIndex(flow).count
        if run.job_count + count > LARGEST_RUN:
            return f"its run would have {run.job_count + count} jobs; {LARGEST_RUN} are possible"
        try:
            instructions = run.plan.add(flow)
        except ValueError as error:
            return f"the jobs that it generated can't be added: {error}"
        run.add_segment(first_job, flow, job)
        driver.roster.note_numbers(first_job, run.number)
        driver.next_id = first_job + count
        driver.emit(JobsGenerated(now, run.number, job, first_job, flow))
        driver.obey(run, instructions, now)
        return ""


def _no_generated(run: LiveRun, index: int, then: TakeGenerated) -> None:
    then("generated jobs can't be read here", 0.0)
