"""One packer for each engine, used as one: this machine packs by its room, a cluster takes what it is given.

What holds a job back on a cluster is its flow's own `max_parallel`, and how many the settings let be there at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from aver.engines.api import LOCAL
from aver.plan.packing import LaneKey, Packer, Room

UNLIMITED = Room(1 << 40, 1 << 40, 1 << 60)


class Packers:
    def __init__(self, local: Packer, most_on_cluster: int | None = None) -> None:
        self.local = local
        self.cluster = Packer(UNLIMITED, most_on_cluster)

    def __len__(self) -> int:
        return len(self.local) + len(self.cluster)

    @property
    def running_count(self) -> int:
        return self.local.running_count + self.cluster.running_count

    @property
    def total(self) -> Room:
        """Of this machine."""
        return self.local.total

    def add(self, job: int, key: LaneKey, priority: int, engine: str) -> None:
        self._of(engine).add(job, key, priority)

    def add_ahead(self, job: int, key: LaneKey, priority: int, engine: str) -> None:
        self._of(engine).add_ahead(job, key, priority)

    def occupy(self, job: int, key: LaneKey, engine: str) -> None:
        self._of(engine).occupy(job, key)

    def is_waiting(self, job: int) -> bool:
        return self.local.is_waiting(job) or self.cluster.is_waiting(job)

    def remove(self, job: int) -> None:
        self.local.remove(job)
        self.cluster.remove(job)

    def finish(self, job: int) -> None:
        self.local.finish(job)
        self.cluster.finish(job)

    def start_next(self) -> int | None:
        job = self.local.start_next()
        return self.cluster.start_next() if job is None else job

    def heads(self) -> Iterator[tuple[int, str]]:
        yield from self.local.heads()
        yield from self.cluster.heads()

    def _of(self, engine: str) -> Packer:
        return self.local if engine == LOCAL else self.cluster
