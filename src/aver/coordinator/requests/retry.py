"""`retry`: new attempts of settled jobs, of one or several runs."""

from __future__ import annotations

from aver.client.job_files import check_env
from aver.coordinator.requests import actions
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.run import LiveRun
from aver.errors import UsageError
from aver.model.states import State
from aver.protocol.messages import Retried, Retry

RETRIED = frozenset(State) - {State.COMPLETED, State.SKIPPED}


@writes(Retry)
def retry(context: Context, _: Peer, request: Retry, now: float) -> Retried:
    """Everything is checked before anything is changed: a refused request has retried nothing."""
    chosen: dict[int, dict[int, None]] = {}  # indices of jobs, by run
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
        actions.retry(context.machine, context.machine.runs[run_number], list(indices), request.by, now)
    return Retried(
        tuple(context.machine.runs[number].job_number(index) for number in chosen for index in chosen[number])
    )


def _all_bad(run: LiveRun) -> list[int]:
    indices = [index for index in range(run.job_count) if run.plan.state(index) in RETRIED]
    if not indices:
        raise UsageError(f"run {run.number} has nothing to retry: no job failed, was lost or was cancelled")
    return indices
