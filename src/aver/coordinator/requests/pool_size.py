"""`pool_size`: how much of a pool there is for all runs."""

from __future__ import annotations

from aver.config import MOST_OF_POOL, pool_name
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.errors import UsageError
from aver.model.events import PoolSized
from aver.protocol.messages import Done, PoolSize

NO_RUN = 0


@writes(PoolSize)
def set_size(context: Context, _: Peer, request: PoolSize, now: float) -> Done:
    try:
        pool_name(request.name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if request.size is not None and not 0 <= request.size <= MOST_OF_POOL:
        raise UsageError(f"size: {request.size} is out of range")
    context.machine.emit(PoolSized(now, NO_RUN, request.name, request.size, request.by))
    return Done()
