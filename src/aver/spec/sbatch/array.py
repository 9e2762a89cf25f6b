"""Slurm's job arrays: `1-10`, `0-20:5`, `1,3,7-9`, each with an optional `%limit`.

An array is a matrix with the one axis `array`; its members are `7_3`: the run's number and the index.
Indices are below 1001, as with Slurm's usual MaxArraySize. A limit that is no number, or 0, is none, as in Slurm.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from aver.model.job import JobSpec, Matrix
from aver.model.slurm_names import HIGHEST_INDEX

AXIS = "array"

_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


class Indices(NamedTuple):
    """The members' indices, growing, and how many of them may run at one time."""

    values: tuple[int, ...]
    limit: int | None


def parse_array(text: str) -> Indices:
    """Read an array's specification; raise ValueError for anything that Slurm refuses."""
    listed, _, limit = text.strip().partition("%")
    return Indices(parse_indices(listed), _limit(limit))


def parse_indices(text: str) -> tuple[int, ...]:
    """Read `1-3,7`, with or without brackets."""
    listed = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    found: set[int] = set()
    for part in listed.split(","):
        match = _PART.fullmatch(part)
        if match is None or not part.isascii():
            raise ValueError(f"{text!r} is not a list of array indices: give 1-10, 0-20:5 or 1,3,7-9")
        first = int(match[1])
        last = int(match[2] or first)
        step = int(match[3] or 1)
        if last < first or step == 0 or last > HIGHEST_INDEX:
            raise ValueError(f"{text!r} is not a list of array indices: they grow and end at {HIGHEST_INDEX}")
        found.update(range(first, last + 1, step))
    return tuple(sorted(found))


def matrix_of(indices: Indices) -> Matrix:
    values = tuple(str(value) for value in indices.values)
    return Matrix(((AXIS, values),), max_parallel=indices.limit)


def is_array(spec: JobSpec) -> bool:
    """Whether the job is one of Slurm's arrays rather than a matrix of a flow."""
    matrix = spec.matrix
    return matrix is not None and len(matrix.axes) == 1 and matrix.axes[0][0] == AXIS and spec.slurm is not None


def step_of(values: tuple[int, ...]) -> int:
    """The distance between indices, 1 where it is not the same everywhere."""
    steps = {after - before for before, after in pairwise(values)}
    return steps.pop() if len(steps) == 1 else 1


def _limit(text: str) -> int | None:
    match = re.match(r"[0-9]{1,9}", text)
    return int(match[0]) or None if match else None
