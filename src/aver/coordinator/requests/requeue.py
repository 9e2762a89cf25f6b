"""`requeue`: end a running job and begin it again; a settled one begins again."""

from __future__ import annotations

from aver.client.job_files import has_env
from aver.coordinator.requests import update
from aver.coordinator.requests.actions import Said
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.fold import REQUEUE, REQUEUE_HOLD
from aver.coordinator.state.run import LiveRun
from aver.protocol.messages import Requeue, ResultCode, Results


@writes(Requeue)
def requeue(context: Context, _: Peer, request: Requeue, now: float) -> Results:
    how = REQUEUE_HOLD if request.hold else REQUEUE

    def act(run: LiveRun, index: int) -> Said:
        if run.state.is_settled and not has_env(context.home, run.number):
            return Said("its environment was removed; submit it again", ResultCode.REFUSED)
        return update.requeue(context.machine, run, index, how, request.by, now)

    return context.each_job(request.ids, now, act, revive=True)
