"""`stop`: the coordinator leaves; jobs go on."""

from __future__ import annotations

from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import serves
from aver.coordinator.server import Peer
from aver.protocol.messages import Done, Stop


@serves(Stop)
def stop(context: Context, _: Peer, __: Stop, ___: float) -> Done:
    context.stop()
    return Done()
