"""The runs that the coordinator holds, found by their own number or by that of a job."""

from __future__ import annotations

from bisect import bisect_right

from aver.coordinator.state.run import LiveRun

SPARE = 1000  # numbers of runs that are gone, before they are cleared away


class Roster:
    def __init__(self) -> None:
        self.runs: dict[int, LiveRun] = {}
        self._firsts: list[int] = []  # first numbers of segments, growing, and beside it whose they are
        self._owners: list[int] = []

    def add(self, run: LiveRun) -> None:
        self.runs[run.number] = run
        for segment in run.segments:
            self.note_numbers(segment.first_job, run.number)

    def note_numbers(self, first_job: int, run: int) -> None:
        """Jobs from this number on are of this run."""
        place = bisect_right(self._firsts, first_job)
        self._firsts.insert(place, first_job)
        self._owners.insert(place, run)

    def find(self, number: int) -> tuple[LiveRun, int | None] | None:
        """The run with this number (index None), or the run and index of the job with it."""
        run = self.runs.get(number)
        if run is not None:
            return run, 0 if run.is_single else None
        place = bisect_right(self._firsts, number) - 1
        run = self.runs.get(self._owners[place]) if place >= 0 else None
        index = run.index_of(number) if run is not None else None
        return (run, index) if run is not None and index is not None else None

    def remove(self, number: int) -> None:
        self.runs.pop(number, None)
        if len(self._firsts) > 2 * len(self.runs) + SPARE:
            pairs = zip(self._firsts, self._owners, strict=True)
            kept = [(first, owner) for first, owner in pairs if owner in self.runs]
            self._firsts = [first for first, _ in kept]
            self._owners = [owner for _, owner in kept]
