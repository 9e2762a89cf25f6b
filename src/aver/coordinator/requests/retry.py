"""`retry`: new attempts of settled jobs, of one or several runs."""

from __future__ import annotations

from collections.abc import Sequence

from aver.client.job_files import check_env
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.errors import UsageError
from aver.model import reasons
from aver.model.events import JobMoved, PersonAsked, RunMoved
from aver.model.states import State
from aver.protocol.messages import Retried, Retry

RETRIED = frozenset(State) - {State.COMPLETED, State.SKIPPED}


@writes(Retry)
def retry_jobs(context: Context, _: Peer, request: Retry, now: float) -> Retried:
    """Everything is checked before anything is changed: a refused request has retried nothing."""
    chosen: dict[int, dict[int, None]] = {}  # indices of jobs, by run
    context.machine.go_on_cancelling(now, most=None)  # what was cancelled before is CANCELLED, and may be retried
    for number in dict.fromkeys(request.ids):
        run = context.revive(number, now)
        if run is None:
            raise UsageError(f"no job or run {number}")
        found = context.machine.find(number)
        index = None if found is None else found[1]
        chosen.setdefault(run.number, {}).update(dict.fromkeys(_all_bad(run) if index is None else [index]))
    for run_number, indices in chosen.items():
        run = context.machine.runs[run_number]
        for index in indices:
            if run.plan.state(index) is None:
                raise UsageError(f"job {run.job_number(index)} is not settled; it can't be retried before")
        check_env(context.home, run_number)
    for run_number, indices in chosen.items():
        retry(context.machine, context.machine.runs[run_number], list(indices), request.by, now, request.reason)
    return Retried(
        tuple(context.machine.runs[number].job_number(index) for number in chosen for index in chosen[number])
    )


def _all_bad(run: LiveRun) -> list[int]:
    indices = [index for index in range(run.job_count) if run.plan.state(index) in RETRIED]
    if not indices:
        raise UsageError(f"run {run.number} has nothing to retry: no job failed, was lost or was cancelled")
    return indices


def retry(machine: Machine, run: LiveRun, indices: Sequence[int], by: str, now: float, reason: str = "") -> None:
    """New attempts of settled jobs; what was skipped below them comes back."""
    machine.go_on_cancelling(now, most=None)
    for index in indices:
        machine.emit(PersonAsked(now, run.number, run.job_number(index), by, "retry", reason=reason))
    run_again(machine, run, indices, now)


def run_again(machine: Machine, run: LiveRun, indices: Sequence[int], now: float) -> None:
    state = State.PENDING if run.state.is_settled else run.state
    machine.emit(RunMoved(now, run.number, state, run.round + 1))
    for index in indices:
        machine.emit(JobMoved(now, run.number, run.job_number(index), State.PENDING, reasons.DEPENDENCY))
    machine.advance(now)


def reopen_run(machine: Machine, run: LiveRun, now: float) -> None:
    """The run goes on, if it was settled."""
    if run.state.is_settled:
        machine.emit(RunMoved(now, run.number, State.PENDING, run.round))
