"""`cancel`: end jobs and runs, or send them a signal."""

from __future__ import annotations

from aver.coordinator.requests import actions
from aver.coordinator.requests.context import Context, together
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.run import LiveRun
from aver.protocol.messages import Cancel, ResultCode, Results


@writes(Cancel)
def cancel(context: Context, _: Peer, request: Cancel, now: float) -> Results:
    machine, signal, by = context.machine, request.signal, request.by

    def act(run: LiveRun, index: int | None) -> actions.Said:
        if signal is not None:
            indices = [index] if index is not None else list(range(run.job_count))
            done = [actions.signal(machine, run, one, signal, by, now, request.scope) for one in indices]
            return done[0] if len(done) == 1 else together(done)
        if index is None:
            return actions.cancel_run(machine, run, by, now, request.now, request.force)
        return actions.cancel(machine, run, index, by, now, request.force)

    over = ResultCode.ALREADY if signal is None else ResultCode.SETTLED
    return context.each(request.ids, now, act, settled=over)
