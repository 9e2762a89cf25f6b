"""Families of gates and terms, for members that have needs of their own: numbers in a row instead of objects.

Pure, and only for `plan.gates`. A family of gates has one gate for each combination of lanes that a member needs; a row
of terms has one for each lane. Who hears of what is kept as the inverse of a list of numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from aver.plan.lanes import Inverse, Lanes

Column: TypeAlias = "int | array[int]"  # one term for all gates of a family, or one for each


class Family:
    """The gates of one list of needs: one gate, or one for each combination of lanes that a member can need."""

    __slots__ = ("_inverse", "first", "gate_of_member", "leaves", "size", "specs", "terms", "view")

    def __init__(self, first: int, size: int, gate_of_member: array[int] | None) -> None:
        self.first = first
        self.size = size
        self.gate_of_member = gate_of_member  # None: all members of all its specs have one gate
        self.specs: list[int] = []
        self.terms: tuple[Column, ...] = ()
        self.leaves: tuple[Column, ...] = ()  # a term for each need, as written
        self.view: Column = -1  # the term of its trouble
        self._inverse: Inverse | None = None

    def members(self, gate: int) -> Sequence[int]:
        """The members of its one spec that have the gate."""
        assert self.gate_of_member is not None
        if self.size == len(self.gate_of_member):
            return (gate - self.first,)  # gates are numbered in the order of members
        if self._inverse is None:
            self._inverse = Inverse(self.gate_of_member, self.size)
        return self._inverse.places(gate - self.first)


class LaneTerms:
    """Terms over lanes: one for each lane, and the listeners of each."""

    __slots__ = ("first", "heard_by", "lanes", "viewed_by")

    def __init__(self, first: int, lanes: Lanes) -> None:
        self.first = first
        self.lanes = lanes
        self.heard_by: list[tuple[int, Inverse]] = []  # what is heard of a lane: its places, from a first listener on
        self.viewed_by: list[tuple[int, Inverse]] = []


def distinct(columns: Iterable[Column]) -> list[Column]:
    return list({column if isinstance(column, int) else ~id(column): column for column in columns}.values())


def by_lane(block: LaneTerms, column: array[int]) -> Inverse:
    """Which gates of a family have each lane's term."""
    return Inverse([term - block.first for term in column], len(block.lanes.sizes))
