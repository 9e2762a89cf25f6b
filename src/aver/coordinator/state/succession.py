"""What follows an attempt's end: another attempt of its job, the jobs that it generated, or its part of a later run."""

from __future__ import annotations

from collections.abc import Mapping

from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.fold import REQUEUES, emit
from aver.coordinator.state.live import LiveState
from aver.coordinator.state.run import LiveRun
from aver.model.events import JobMoved, JobsGenerated
from aver.model.evidence import GeneratedRead, Verdict
from aver.model.job import FlowSpec
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.plan.retry import decide, requeues

LARGEST_RUN = 2_000_000
Taken = Mapping[int, Verdict]  # verdicts of jobs that are not run, by their places in the run
NONE: Taken = {}


def reason_to_go_on(live: LiveState, run: LiveRun, attempt: LiveAttempt, verdict: Verdict) -> str | None:
    """The reason with which the job is PENDING again, if a person or its rule says so; None: the job is settled."""
    if attempt.cancel_asked:
        return None
    if attempt.requeue:
        return REQUEUES[attempt.requeue]
    if verdict.state is State.COMPLETED:
        return None
    spec = run.spec(attempt.index)
    is_requeued = requeues(spec, attempt.can.may_lose_nodes, live.requeues_lost)
    if spec.retry is None and spec.checkpoint is None and not is_requeued:
        return None
    budget = run.submission.flow.retry_budget
    left = None if budget is None else max(0, budget - run.retries_used)
    again = decide(spec, run.history.get(attempt.index, ()), verdict, left, attempt.request, is_requeued)
    return None if again is None else str(again.why)


def add_generated(live: LiveState, run: LiveRun, index: int, found: FlowSpec | str, now: float) -> GeneratedRead:
    """Add the jobs that a completion brought, all or none; what there is to say of them to the judge."""
    problem = found if isinstance(found, str) else _add(live, run, run.job_number(index), found, now)
    return GeneratedRead(now, problem)


def _add(live: LiveState, run: LiveRun, job: int, flow: FlowSpec, now: float) -> str:
    """Return what is wrong with them; empty: they are there."""
    before = [segment for segment in run.segments if segment.made_by == job]
    if before:
        if any(segment.flow.jobs == flow.jobs for segment in before):
            return ""  # the same jobs as when it ran before
        return "it generated other jobs when it ran before; submit the flow as a new run"
    count = run.job_count + FlowIndex(flow).count
    if count > LARGEST_RUN:
        return f"its run would have {count} jobs; {LARGEST_RUN} are possible"
    try:
        emit(live, JobsGenerated(now, run.number, job, live.next_id, flow))
    except ValueError as error:
        return f"the jobs that it generated can't be added: {error}"
    return ""


def take_over(live: LiveState, run: LiveRun, taken: Taken, now: float) -> None:
    """Give jobs of a new run the verdicts of an earlier one instead of running them."""
    for index, verdict in taken.items():
        emit(live, JobMoved(now, run.number, run.job_number(index), verdict.state, verdict.reason, verdict))
