"""What is due when, by kind and job: the last time that was set for a pair counts.

Times are of the wall clock, which may be set. A wait that has a beginning lasts as long as it was to last: when the
clock is set back behind its beginning, it begins again. What was set for a moment (a begin time) stays there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Timers:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str, int]] = []
        self._due: dict[tuple[str, int], float] = {}
        self._since: dict[tuple[str, int], float] = {}  # of waits
        self._over: set[tuple[str, int]] = set()  # waits that were taken
        self._now = 0.0  # the last time that was asked for
        self._sequence = 0

    def at(self, when: float, kind: str, job: int, since: float | None = None) -> None:
        """Set the time; `since`: it is the end of a wait that began then."""
        self._sequence += 1
        self.drop(job, kind)
        self._due[kind, job] = when
        if since is not None:
            self._since[kind, job] = since
        heapq.heappush(self._heap, (when, self._sequence, kind, job))

    def shift(self, by_s: float) -> None:
        """The clock was set by so much: waits end as far away as before."""
        for (kind, job), since in list(self._since.items()):
            self.at(self._due[kind, job] + by_s, kind, job, since + by_s)

    def drop(self, job: int, *kinds: str) -> None:
        for kind in kinds:
            self._due.pop((kind, job), None)
            self._since.pop((kind, job), None)
            self._over.discard((kind, job))

    def drop_all(self, jobs: range, *kinds: str) -> None:
        """The same of many jobs."""
        if self._due or self._over:
            for job in jobs:
                self.drop(job, *kinds)

    def is_over(self, kind: str, job: int) -> bool:
        """Whether the wait was taken, whatever the clock has said since."""
        return (kind, job) in self._over

    def due(self, kind: str, job: int) -> float | None:
        return self._due.get((kind, job))

    def next_due(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> Iterator[tuple[str, int]]:
        """Kind and job of what is due by now; what is set meanwhile for a time that has passed comes too."""
        if now < self._now:
            self._begin_again(now)
        self._now = now
        while self._heap and self._heap[0][0] <= now:
            at, _, kind, job = heapq.heappop(self._heap)
            if self._due.get((kind, job)) == at:
                del self._due[kind, job]
                if self._since.pop((kind, job), None) is not None:
                    self._over.add((kind, job))
                yield kind, job

    def _begin_again(self, now: float) -> None:
        """The clock was set back: waits that have begun later than now begin now."""
        for (kind, job), since in list(self._since.items()):
            if since > now:
                self.at(now + self._due[kind, job] - since, kind, job, now)
