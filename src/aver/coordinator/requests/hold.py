"""`hold` and `release`: keep pending jobs from starting."""

from __future__ import annotations

from aver.coordinator.requests import actions
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.protocol.messages import Hold, Release, Results


@writes(Hold)
def hold(context: Context, _: Peer, request: Hold, now: float) -> Results:
    return context.each_job(
        request.ids, now, lambda run, index: actions.hold(context.machine, run, index, request.by, now)
    )


@writes(Release)
def release(context: Context, _: Peer, request: Release, now: float) -> Results:
    return context.each_job(
        request.ids, now, lambda run, index: actions.release(context.machine, run, index, request.by, now)
    )
