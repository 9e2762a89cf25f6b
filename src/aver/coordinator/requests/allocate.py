"""`allocate`: more allocations for a run whose jobs run in them."""

from __future__ import annotations

from aver.coordinator.order.allocations import want_more
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.errors import UsageError
from aver.protocol.messages import Allocate, Allocated


@writes(Allocate)
def allocate(context: Context, _: Peer, request: Allocate, now: float) -> Allocated:
    found = context.machine.runs.get(request.run)
    if found is None or found.state.is_settled:
        known = context.settled_state(request.run) is not None
        hint = "is settled; aver retry runs again what failed, in new allocations" if known else "is not there"
        raise UsageError(f"run {request.run} {hint}")
    want_more(context.machine, found, request.allocation, request.by, now)
    return Allocated(found.number)
