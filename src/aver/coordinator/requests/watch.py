"""`watch`: push changes of jobs and runs to the one who asks. Its reply goes out at once: pushes may follow."""

from __future__ import annotations

from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import serves
from aver.coordinator.server import Peer
from aver.protocol.messages import Watch


@serves(Watch)
def watch(context: Context, peer: Peer, request: Watch, _: float) -> None:
    context.watchers.watch(peer, request.ids, request.foreground)
