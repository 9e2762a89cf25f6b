"""`ping`: who answers, and how much it has to do."""

from __future__ import annotations

import os

from aver.coordinator.commit import LATENCIES_S
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import serves
from aver.coordinator.server import Peer
from aver.protocol.messages import Ping, Pong, VerdictLatency
from aver.version import __version__


@serves(Ping)
def ping(context: Context, _: Peer, __: Ping, ___: float) -> Pong:
    packer = context.machine.packer
    latency = context.latency
    verdicts = VerdictLatency(LATENCIES_S, tuple(latency.counts), latency.sum_s)
    return Pong(os.getpid(), __version__, packer.running_count, len(packer), verdicts, context.problem())
