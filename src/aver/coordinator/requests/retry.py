"""`retry`: new attempts of settled jobs of a run."""

from __future__ import annotations

from aver.client.job_files import check_env
from aver.coordinator.requests import actions
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.errors import UsageError
from aver.model.states import State
from aver.protocol.messages import Continued, Retry

RETRIED = frozenset(State) - {State.COMPLETED, State.SKIPPED}


@writes(Retry)
def retry(context: Context, _: Peer, request: Retry, now: float) -> Continued:
    run = context.revive(request.run, now)
    if run is None:
        raise UsageError(f"run {request.run} does not exist")
    if request.jobs is None:
        indices = [index for index in range(run.job_count) if run.plan.state(index) in RETRIED]
    else:
        indices = []
        for job in dict.fromkeys(request.jobs):
            index = run.index_of(job)
            if index is None:
                raise UsageError(f"job {job} is not of run {run.number}")
            if run.plan.state(index) is None:
                raise UsageError(f"job {job} is not settled; it can't be retried before")
            indices.append(index)
    if not indices:
        raise UsageError(f"run {run.number} has nothing to retry: no job failed, was lost or was cancelled")
    check_env(context.home, run.number)
    actions.retry(context.machine, run, indices, request.by, now)
    return Continued(run.number, tuple(run.job_number(index) for index in indices), run.round)
