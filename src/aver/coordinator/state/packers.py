"""Two packers, used as one: jobs are packed into this machine's room; an engine with a queue takes what it is given.

What holds a job back there is its flow's own `max_parallel`, and how many the settings let be in queues at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from aver.engines.api import Capabilities
from aver.plan.packing import LaneKey, Packer, Room

UNLIMITED = Room(1 << 40, 1 << 40, 1 << 60)


class Packers:
    def __init__(self, packed: Packer, most_queued: int | None = None) -> None:
        self.packed = packed
        self.pools = packed.pools
        self.queued = Packer(UNLIMITED, most_queued, packed.pools)

    def __len__(self) -> int:
        return len(self.packed) + len(self.queued)

    @property
    def running_count(self) -> int:
        return self.packed.running_count + self.queued.running_count

    @property
    def total(self) -> Room:
        """Of this machine."""
        return self.packed.total

    def add(self, job: int, key: LaneKey, priority: int, can: Capabilities) -> None:
        self._of(can).add(job, key, priority)

    def add_ahead(self, job: int, key: LaneKey, priority: int, can: Capabilities) -> None:
        self._of(can).add_ahead(job, key, priority)

    def occupy(self, job: int, key: LaneKey, can: Capabilities) -> None:
        self._of(can).occupy(job, key)

    def is_waiting(self, job: int) -> bool:
        return self.packed.is_waiting(job) or self.queued.is_waiting(job)

    def remove(self, job: int) -> None:
        self.packed.remove(job)
        self.queued.remove(job)

    def remove_all(self, jobs: range) -> None:
        self.packed.remove_all(jobs)
        self.queued.remove_all(jobs)

    def finish(self, job: int) -> None:
        self.packed.finish(job)
        self.queued.finish(job)

    def start_next(self) -> int | None:
        job = self.packed.start_next()
        return self.queued.start_next() if job is None else job

    def heads(self) -> Iterator[tuple[int, str]]:
        yield from self.packed.heads()
        yield from self.queued.heads()

    def _of(self, can: Capabilities) -> Packer:
        return self.queued if can.has_queue else self.packed
