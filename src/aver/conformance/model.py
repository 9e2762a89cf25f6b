"""A conformance case: what to submit and do, and what the commands must then print.

Cases are text files; `parser` reads them, and docs/en/reference/conformance.md describes their grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TypeAlias

ONLY = "a"
"""The default name of a case's job; its rows and acts need no `job:` prefix."""

Version: TypeAlias = tuple[int, int]
"""A release of Slurm, such as (22, 5)."""

VERSIONS: tuple[Version, ...] = ((22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11))
"""The releases from which on an expectation may differ. The first is the one that unmarked lines describe."""
OLDEST = VERSIONS[0]


def release(version: Version) -> str:
    """A release as Slurm writes it: 22.05."""
    return f"{version[0]}.{version[1]:02}"


@dataclass(frozen=True)
class Submit:
    """Submit a script with sbatch. The output goes to a file in the case's folder unless an option says otherwise."""

    script: str
    options: tuple[str, ...] = ()
    job: str = ONLY
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Alone:
    """Start srun outside any job, and continue while it runs."""

    arguments: tuple[str, ...]
    job: str = ONLY


@dataclass(frozen=True)
class When:
    """Wait until a job has a state, and a pending reason, or until its output contains a text."""

    state: str = ""
    reason: str = ""
    says: str = ""
    job: str = ONLY


@dataclass(frozen=True)
class Look:
    """Store what scontrol prints for a job at this moment, as the row `name`."""

    name: str
    job: str = ONLY


@dataclass(frozen=True)
class Settled:
    """Wait until scontrol and sacct agree that a job has ended."""

    job: str = ONLY


@dataclass(frozen=True)
class Forgotten:
    """Wait until scontrol no longer lists a job."""

    job: str = ONLY


@dataclass(frozen=True)
class Command:
    """Run a command as the user. `row` names the row that stores its exit status and output."""

    words: tuple[str, ...]
    row: str = ""


@dataclass(frozen=True)
class Operator:
    """Run a command as the cluster's operator."""

    words: tuple[str, ...]


Act: TypeAlias = Submit | Alone | When | Look | Settled | Forgotten | Command | Operator

FIELDS: dict[str, tuple[str, ...]] = {
    "scontrol": ("state", "exit", "derived", "reason"),
    "sacct": ("state", "exit"),
    "batch": ("state", "exit"),
    "step": ("state", "exit"),
}
"""Rows of several cells, and what each cell is."""


@dataclass(frozen=True)
class Row:
    """What one row must say from a release of Slurm on: Slurm's value, and Aver's where a difference is intended."""

    name: str
    slurm: str
    aver: str
    difference: str
    since: Version | None = None


@dataclass(frozen=True)
class Case:
    """One case of the matrix. `needs` names what not every machine has: memory, nodes, operator, partitions."""

    name: str
    shows: str
    acts: tuple[Act, ...]
    rows: tuple[Row, ...]
    needs: frozenset[str] = frozenset()
    is_slow: bool = False

    @property
    def theme(self) -> str:
        return self.name.split("/")[0]

    def at(self, version: Version) -> Case:
        """The case with the rows of one release: of each row the last line that is not newer."""
        last = {row.name: row for row in self.rows if row.since is None or row.since <= version}
        return replace(self, rows=tuple(last.values()))


def choices_of(cell: str, value: str) -> tuple[str, ...]:
    """The values that a cell may have: `A;B` is a choice in a state, an exit or a reason, `A ;; B` in text."""
    return tuple(value.split(";" if "." in cell.rpartition(":")[2] else " ;; "))


def cells_of(name: str, value: str) -> dict[str, str]:
    """A row's value as its named cells; a row of text is one cell."""
    kind = re.sub(r"\d+$", "", name.split(":")[-1])
    fields = FIELDS.get(kind, ())
    words = value.split()
    if len(words) != len(fields):
        return {name: value}
    return {f"{name}.{field}": word for field, word in zip(fields, words, strict=True)}
