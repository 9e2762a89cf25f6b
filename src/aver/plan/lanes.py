"""Needs of single members: jobs in lanes by the values of some axes, and the lane that each member needs.

Pure. Nothing here grows with pairs of jobs: a lane is a number, and a matrix keeps one number for each of its members.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

Key = tuple[str, ...]


class Inverse:
    """Of a list of numbers below `count`: where each number stands. Negative numbers stand for none."""

    __slots__ = ("_offsets", "_places")

    def __init__(self, numbers: Sequence[int], count: int) -> None:
        sizes = [0] * (count + 1)
        for number in numbers:
            sizes[number] += 1  # those of -1 are in the last, which no offset counts
        self._offsets = array("q", [0])
        total = 0
        for size in sizes[:count]:
            total += size
            self._offsets.append(total)
        ends = self._offsets[:]
        self._places = array("q", bytes(8 * total))
        for place, number in enumerate(numbers):
            if number >= 0:
                self._places[ends[number]] = place
                ends[number] += 1

    def places(self, number: int) -> array[int]:
        return self._places[self._offsets[number] : self._offsets[number + 1]]


class Lanes:
    """Jobs of some specs: those with the same values of some axes are in one lane, and no job is in two."""

    __slots__ = ("_inverses", "lane_of", "sizes")

    def __init__(self) -> None:
        self.lane_of: dict[int, array[int]] = {}  # by spec: the lane of each member, -1 for none
        self.sizes: list[int] = []
        self._inverses: dict[int, Inverse] = {}

    def add(self, spec: int, numbers: Sequence[int], keys: Sequence[Key | None], index: dict[Key, int]) -> None:
        """Add a spec's members and note their lanes in `index`. `keys[numbers[member]]` is a key; None: in no lane."""
        counts = [0] * len(keys)
        for number in numbers:
            counts[number] += 1
        lanes = array("q", [-1]) * len(keys)
        for number, key in enumerate(keys):
            if key is not None and counts[number]:
                lane = lanes[number] = index.setdefault(key, len(self.sizes))
                if lane == len(self.sizes):
                    self.sizes.append(0)
                self.sizes[lane] += counts[number]
        self.lane_of[spec] = array("q", map(lanes.__getitem__, numbers))

    @property
    def specs(self) -> Iterable[int]:
        return self.lane_of.keys()

    def jobs(self, lane: int, starts: Sequence[int]) -> list[int]:
        """The jobs of a lane, each spec's members in their order; `starts` has the first job of each spec."""
        found: list[int] = []
        for spec, numbers in self.lane_of.items():
            inverse = self._inverses.get(spec)
            if inverse is None:
                inverse = self._inverses[spec] = Inverse(numbers, len(self.sizes))
            found += [starts[spec] + member for member in inverse.places(lane)]
        return found


class Link:
    """The lane that each member of one spec needs; `text` says which it is when the member's values are put in."""

    __slots__ = ("_inverse", "lanes", "of_member", "text")

    def __init__(self, text: str, lanes: Lanes, of_member: array[int]) -> None:
        self.text = text
        self.lanes = lanes
        self.of_member = of_member
        self._inverse: Inverse | None = None

    def members(self, lane: int) -> array[int]:
        """The members that need the lane."""
        if self._inverse is None:
            self._inverse = Inverse(self.of_member, len(self.lanes.sizes))
        return self._inverse.places(lane)
