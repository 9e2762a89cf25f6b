"""What the coordinator's loop has given to the thread of the engine of allocations, and the thread has not begun."""

from __future__ import annotations

from aver.engines.api import AllocationAsk, Control, Order
from aver.model.record import Mutable, field


class Work(Mutable):
    """In the order in which the thread takes it up."""

    asks: list[AllocationAsk] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.asks or self.orders or self.controls or self.settled or self.closed)
