"""The states in which a power cut may leave a disk, chosen by seed. Pure.

A state is a position in the trace at which the power went, and what of the unsynced changes had reached the disk by
then: nothing; everything; the oldest ones, and of the next a part; or any of them, in pieces of 512 or 4,096 bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from power_loss.disk import Disk, Inode, Tree, survived
from power_loss.trace import Kind, Op

GRAINS = (512, 4096)
LUCK = (0.1, 0.5, 0.9)  # of each change to have survived


@dataclass(frozen=True, slots=True, order=True)
class State:
    """`cut`: how many records of the trace came before the power cut. `seed`: what survived of them."""

    cut: int
    seed: int

    def __str__(self) -> str:
        return f"{self.cut}:{self.seed}"

    @classmethod
    def parse(cls, text: str) -> State:
        cut, seed = text.split(":")
        return cls(int(cut), int(seed))


def choose(ops: Sequence[Op], count: int, seed: int) -> list[State]:
    """So many states: of every position as many as of each other, as far as that comes out even; by position."""
    positions = [position for position in range(len(ops) + 1) if _changes_something(ops, position)]
    chance = random.Random(f"choose {seed}")
    cuts: list[int] = []
    while count - len(cuts) >= len(positions):
        cuts += positions
    cuts += chance.sample(positions, count - len(cuts))
    return sorted(State(cut, seed * 1_000_000 + number) for number, cut in enumerate(cuts))


def _changes_something(ops: Sequence[Op], position: int) -> bool:
    """Whether the disk is another one than a record before: a mark changes nothing but what must hold."""
    return position == 0 or ops[position - 1].kind is not Kind.MARK or position == len(ops)


def trees(ops: Sequence[Op], states: Sequence[State]) -> Iterator[tuple[State, Tree]]:
    """What the disk has in each of these states, which are sorted."""
    disk = Disk()
    for state in states:
        while disk.position < state.cut:
            disk.apply(ops[disk.position])
        yield state, survivors(disk, random.Random(f"state {state.seed}"))


def survivors(disk: Disk, chance: random.Random) -> Tree:
    """What the disk has after the power went."""
    grain = chance.choice(GRAINS)
    match chance.choice(("nothing", "everything", "oldest", "some", "some")):
        case "nothing":
            return disk.tree(lambda _: False, lambda inode: inode.data)
        case "everything":
            return disk.as_seen()
        case "oldest":
            positions = disk.pending_positions()
            last = chance.choice(positions) if positions else 0
            pieces = chance.choice((0, 1, 2, 5))
            return disk.tree(
                lambda entry: entry.position <= last,
                lambda inode: survived(
                    inode, lambda at, piece: at < last or (at == last and piece < pieces), grain, is_full_size=False
                ),
            )
        case _:
            luck = chance.choice(LUCK)

            def content(inode: Inode) -> bytes:
                ahead = chance.random() < 0.3
                return survived(inode, lambda _, __: chance.random() < luck, grain, is_full_size=ahead)

            return disk.tree(lambda _: chance.random() < luck, content)
