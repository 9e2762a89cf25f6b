"""What is due when, by kind and job: the last time that was set for a pair counts."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Timers:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str, int]] = []
        self._due: dict[tuple[str, int], float] = {}
        self._sequence = 0

    def at(self, when: float, kind: str, job: int) -> None:
        self._sequence += 1
        self._due[kind, job] = when
        heapq.heappush(self._heap, (when, self._sequence, kind, job))

    def drop(self, job: int, *kinds: str) -> None:
        for kind in kinds:
            self._due.pop((kind, job), None)

    def next_due(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> Iterator[tuple[str, int]]:
        """Kind and job of what is due by now; what is set meanwhile for a time that has passed comes too."""
        while self._heap and self._heap[0][0] <= now:
            at, _, kind, job = heapq.heappop(self._heap)
            if self._due.get((kind, job)) == at:
                del self._due[kind, job]
                yield kind, job
