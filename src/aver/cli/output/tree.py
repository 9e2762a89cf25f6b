"""A live tree of jobs on a terminal: pure lines, and a screen that draws them over the last ones.

Never more lines than the terminal has, never wider than it is. What does not fit is counted in a last
line; what runs and what failed is left out last.
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.cli.output.documents import RunFacts
from aver.cli.output.progress import bar
from aver.cli.output.table import cell_count as cell_count
from aver.cli.output.table import cut
from aver.cli.output.text import BAD, COLOURS, Output
from aver.cli.output.views import counts_text, duration
from aver.model.record import Record
from aver.model.states import State
from aver.printable import printable

Piece = tuple[str, State | None]  # a text, and the state whose colour it has


class Branch(Record):
    """One line: a job, or all jobs of one definition."""

    lead: str  # the branches before its name
    name: str
    counts: dict[State, int]
    detail: str  # exit and reason of a single job
    started_at: float | None
    took_s: float | None  # None while it is not over

    @property
    def jobs(self) -> int:
        return sum(self.counts.values())

    @property
    def rank(self) -> int:
        """Order in which branches are left out: the highest rank first."""
        states = set(self.counts)
        if states <= {State.COMPLETED}:
            return 2
        return 1 if states <= {State.PENDING, State.SKIPPED, State.COMPLETED} else 0


def tree_lines(
    runs: Sequence[tuple[RunFacts, Sequence[Branch]]], now: float, width: int, height: int
) -> list[list[Piece]]:
    """The lines of all runs, at most `height` of them, each a list of pieces that fit into `width`."""
    room = max(1, (height // len(runs)) - 1)
    lines: list[list[Piece]] = []
    for run, branches in runs:
        took = f"  {duration((run.ended_at or now) - run.submitted_at)}"
        lines.append([(cut(bar(run), max(1, width - len(took))) + took, None)])
        kept, rest = _fitting(branches, room)
        names = [f"{branch.lead}{_label(branch)}" for branch in kept]
        column = min(max(map(len, names), default=0), max(12, width // 2))
        lines += [_line(branch, name, column, now) for branch, name in zip(kept, names, strict=True)]
        if rest:
            lines.append([(f"  ... {len(rest)} more: {counts_text(_sum(rest))}", None)])
    return [_cut(line, width) for line in lines[:height]]


def _fitting(branches: Sequence[Branch], room: int) -> tuple[list[Branch], list[Branch]]:
    if len(branches) <= room:
        return list(branches), []
    chosen = sorted(range(len(branches)), key=lambda number: (branches[number].rank, number))[: room - 1]
    return (
        [branches[number] for number in sorted(chosen)],
        [branch for number, branch in enumerate(branches) if number not in set(chosen)],
    )


def _label(branch: Branch) -> str:
    return printable(branch.name) + (f" ({branch.jobs})" if branch.jobs > 1 else "")


def _line(branch: Branch, name: str, column: int, now: float) -> list[Piece]:
    pieces: list[Piece] = [(f"  {name[:column]:<{column}}  ", None)]
    for number, (state, count) in enumerate(sorted(branch.counts.items(), key=lambda pair: list(State).index(pair[0]))):
        pieces.append((f"{', ' if number else ''}{f'{count} ' if branch.jobs > 1 else ''}", None))
        pieces.append((state.value, state))
    if branch.detail:
        pieces.append((f" {printable(branch.detail)}", None))
    took = branch.took_s
    if took is None and branch.started_at is not None:
        took = now - branch.started_at
    if took is not None:
        pieces.append((f"  {duration(took)}", None))
    return pieces


def _sum(branches: Sequence[Branch]) -> dict[str, int]:
    total: dict[str, int] = {}
    for branch in branches:
        for state, count in branch.counts.items():
            total[state.value] = total.get(state.value, 0) + count
    return total


def _cut(pieces: list[Piece], width: int) -> list[Piece]:
    left = width
    kept: list[Piece] = []
    for text, state in pieces:
        short = cells(text, left)
        kept.append((short, state))
        left -= cell_count(short)
        if short != text:
            break
    return kept


def cells(text: str, width: int) -> str:
    """Cut the text to this many columns."""
    if len(text) <= width and text.isascii():
        return text
    while cell_count(text) > width:
        text = text[: min(len(text) - 1, width)]
    return text


class Screen:
    """Draws lines over those that it drew last, in one write."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._drawn: list[int] = []  # how many columns each line takes
        self._last = b""

    def draw(self, lines: Sequence[Sequence[Piece]]) -> None:
        masked = [[(self._output.masking.whole(text), state) for text, state in line] for line in lines]
        body = "".join("".join(map(self._coloured, line)) + "\x1b[K\n" for line in masked)
        data = f"{self._back()}{body}\x1b[J".encode("utf-8", "surrogateescape")
        if data != self._last:
            self._output.error_raw(data)
            self._last = data
        self._drawn = [sum(cell_count(text) for text, _ in line) for line in masked]

    def clear(self) -> None:
        if self._drawn:
            self._output.error_raw(f"{self._back()}\x1b[J".encode())
            self._drawn, self._last = [], b""

    def _back(self) -> str:
        """To the first of our lines; a terminal that was made narrower has folded them."""
        width = max(1, self._output.width)
        rows = sum(max(1, -(-taken // width)) for taken in self._drawn)
        return f"\x1b[{rows}A\r" if rows else "\r"

    def _coloured(self, piece: Piece) -> str:
        text, state = piece
        if state is None or not text or not self._output.has_colours:
            return text
        return f"\x1b[{COLOURS.get(state, BAD)}m{text}\x1b[0m"
