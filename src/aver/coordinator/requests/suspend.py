"""`suspend` and `resume`: stop the processes of running jobs, and let them go on."""

from __future__ import annotations

from aver.coordinator.requests import actions
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.protocol.messages import Results, Resume, Suspend


@writes(Suspend)
def suspend(context: Context, _: Peer, request: Suspend, now: float) -> Results:
    return context.each_job(
        request.ids, now, lambda run, index: actions.suspend(context.machine, run, index, request.by, now, resume=False)
    )


@writes(Resume)
def resume(context: Context, _: Peer, request: Resume, now: float) -> Results:
    return context.each_job(
        request.ids, now, lambda run, index: actions.suspend(context.machine, run, index, request.by, now, resume=True)
    )
