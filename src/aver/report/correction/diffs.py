"""A unified diff of two texts that differ in single lines: linear in their length, however many lines differ.

The standard library's looks for the best alignment of any two texts, which takes minutes for 10,000 changed lines.
Here the next line that is the same on both sides is looked for nearby; what comes out is always a right diff, and
a short one for edits of values and added lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

CONTEXT = 3
FARTHEST = 40  # lines that differ in a row, on both sides together; more are shown as one change up to the end


class Change(NamedTuple):
    """Lines a to b of the old text became lines c to d of the new one."""

    a: int
    b: int
    c: int
    d: int


def unified_diff(old: str, new: str, name: str, new_name: str) -> str:
    """The diff in the form that `patch` reads; nothing if the texts are the same."""
    before, after = _split(old), _split(new)
    changes = list(_changes(before, after))
    if not changes:
        return ""
    parts = [f"--- {name}\n", f"+++ {new_name}\n"]
    for hunk in _hunks(changes):
        parts += _hunk(before, after, hunk)
    return "".join(parts)


def _split(text: str) -> list[str]:
    """The lines with their ends; unlike `splitlines` only at newlines, as `patch` has it."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    at, to = 0, 0
    while at < len(old) or to < len(new):
        if at < len(old) and to < len(new) and old[at] == new[to]:
            at, to = at + 1, to + 1
            continue
        gone, come = _next_same(old, new, at, to)
        yield Change(at, at + gone, to, to + come)
        at, to = at + gone, to + come


def _next_same(old: Sequence[str], new: Sequence[str], at: int, to: int) -> tuple[int, int]:
    """How many lines to leave out on both sides until the two go on alike; everything, if that is not near."""
    rest, more = len(old) - at, len(new) - to
    for distance in range(1, FARTHEST + 1):
        for gone in range(min(distance, rest) + 1):
            come = distance - gone
            if come > more:
                continue
            ends = (gone == rest, come == more)
            if all(ends) or (not any(ends) and old[at + gone] == new[to + come]):
                return gone, come
    return rest, more


def _hunks(changes: Sequence[Change]) -> Iterator[list[Change]]:
    hunk = [changes[0]]
    for change in changes[1:]:
        if change.a - hunk[-1].b > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _hunk(old: Sequence[str], new: Sequence[str], hunk: Sequence[Change]) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    before = min(CONTEXT, first.a)
    after = min(CONTEXT, len(old) - last.b)
    spans = (_span(first.a - before, last.b + after), _span(first.c - before, last.d + after))
    yield f"@@ -{spans[0]} +{spans[1]} @@\n"
    at = first.a - before
    for change in hunk:
        yield from _lines(" ", old[at : change.a])
        yield from _lines("-", old[change.a : change.b])
        yield from _lines("+", new[change.c : change.d])
        at = change.b
    yield from _lines(" ", old[at : last.b + after])


def _lines(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _span(start: int, end: int) -> str:
    """As diff has it: lines count from 1; a span of one line is its number, one of none is after its line."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"
