"""A run that was cancelled: its jobs that have not begun are CANCELLED, of very many a part in each turn.

The request alone is durable before it is acknowledged. Nothing of the run begins from then on: what waits for room
leaves the queue at once, and `eligibility` lets nothing in. After a restart the stored request has the same effect.
"""

from __future__ import annotations

from aver.coordinator.state.live import LiveState
from aver.coordinator.state.run import LiveRun
from aver.plan.planner import Instruction

AT_ONCE = 20_000  # jobs that are ended in one turn and with one commit, for which all others wait


def begun(live: LiveState, run: LiveRun) -> list[int]:
    """The places of jobs that have a live attempt, in order: these end as their engine says."""
    if len(run.attempts) < len(live.by_job):
        return sorted(index for index in run.attempts if run.job_number(index) in live.by_job)
    return sorted(attempt.index for attempt in live.by_job.values() if attempt.run == run.number)


def begin(live: LiveState, run: LiveRun) -> list[Instruction]:
    """Have the plan cancel the run."""
    instructions = run.plan.cancel_run(run.cancelled, begun(live, run), AT_ONCE)
    leave_rest(live, run)
    return instructions


def leave_rest(live: LiveState, run: LiveRun) -> None:
    """Leave the jobs that are too many for this turn to `go_on`."""
    if not run.plan.is_cancelling:
        return
    live.cancelling[run.number] = None
    for indices in run.plan.jobs_by_spec():
        if indices and run.is_cancelled(indices[0]):
            first = run.job_number(indices[0])
            live.packer.remove_all(range(first, first + len(indices)))


def go_on(live: LiveState, most: int | None) -> None:
    """Have the plans of runs that were cancelled cancel the next jobs; `Machine.advance` ends them."""
    for number in list(live.cancelling):
        run = live.runs.get(number)
        if run is not None and run.plan.is_cancelling:
            run.instructions += run.plan.cancel_more(begun(live, run), most)
            live.touched[number] = None
        if run is None or not run.plan.is_cancelling:
            del live.cancelling[number]
