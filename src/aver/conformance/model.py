"""A case: what to submit and do, and what the commands must then say.

Expectations are a small table in text, one row a line, as Slurm 22.05 prints them:

    scontrol  FAILED 137:0 0:0 NonZeroExitCode
    sacct     FAILED 9:0 => FAILED 137:0 (whole-codes)
    b:step0   COMPLETED 0:0

A row is `[job:]name`, then its cells, then, after `=>`, the cells that Aver intends to print instead and the name of
the difference. A line that starts with `...` continues the one above. Only the rows of a case's table are compared.
Where Slurm prints the one or the other from run to run, a cell says `A;B`; Aver's are never so.
`{limit}`, `{lead}`, `{deadline}` and `{later}` are times that depend on how exact the clock of the commands is.
Rows: scontrol, sacct, batch, stepN (of sacct), derived (sacct's), said (the script's own `word=value` lines), messages
(of Slurm's programs, in its output), attempts (`sacct -D`), sbatch and srun (how they ended), and those that acts name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from aver.conformance.differences import DIFFERENCES
from aver.errors import InternalError

ONLY = "a"
"""The name of a case's job where it has but one; its rows need no prefix."""


@dataclass(frozen=True)
class Submit:
    """Hand a script to sbatch. The output goes to a file of the runner's unless an option says otherwise."""

    script: str
    options: tuple[str, ...] = ()
    job: str = ONLY
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Alone:
    """Start srun outside any job, and go on while it runs."""

    arguments: tuple[str, ...]
    job: str = ONLY


@dataclass(frozen=True)
class When:
    """Wait until a job has a state, and a pending reason, or until its output has a line."""

    state: str = ""
    reason: str = ""
    says: str = ""
    job: str = ONLY


@dataclass(frozen=True)
class Look:
    """Keep what scontrol says of a job now, as the row `name`."""

    name: str
    job: str = ONLY


@dataclass(frozen=True)
class Settled:
    """Wait until a job has settled in scontrol and in sacct."""

    job: str = ONLY


@dataclass(frozen=True)
class Forgotten:
    """Wait until scontrol no longer knows a job."""

    job: str = ONLY


@dataclass(frozen=True)
class Command:
    """Run a command as the user. `{a}` is the id of job a, `{dir}` the case's folder. `row` keeps how it ended."""

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


@dataclass(frozen=True)
class Row:
    """One expected row: Slurm's cells, and Aver's where they differ, with the name of the difference."""

    name: str
    slurm: str
    aver: str
    difference: str

    @property
    def differs(self) -> bool:
        return bool(self.difference)


@dataclass(frozen=True)
class Case:
    """One row of the matrix. `needs` names what not every machine has: memory, operator, partitions."""

    name: str
    shows: str
    acts: tuple[Act, ...]
    expect: str
    needs: frozenset[str] = frozenset()
    is_slow: bool = False

    @property
    def rows(self) -> tuple[Row, ...]:
        lines = re.sub(r"\s*\n\s*\.\.\.\s*", " ", self.expect).splitlines()
        return tuple(read_row(self.name, line) for line in lines if line.strip())

    @property
    def theme(self) -> str:
        return self.name.split("/")[0]


def case(name: str, shows: str, *acts: Act, expect: str, needs: str = "", is_slow: bool = False) -> Case:
    """A case with its acts in order."""
    return Case(name, shows, acts, expect, frozenset(needs.split()), is_slow)


def script(
    name: str, shows: str, text: str, expect: str, options: str = "", needs: str = "", is_slow: bool = False
) -> Case:
    """A case of one batch job that runs to its end with nobody's help."""
    return Case(name, shows, (Submit(text, tuple(options.split())),), expect, frozenset(needs.split()), is_slow)


def read_row(case_name: str, line: str) -> Row:
    """One line of a table; raises InternalError for a line that is not one."""
    found = re.fullmatch(r"\s*(\S+)\s+(.*?)(?:\s+=>\s+(.*?)\s+\(([\w-]+)\))?\s*", line)
    if found is None or " => " in found[2]:
        raise InternalError(f"conformance case {case_name}: can't read the row {line.strip()!r}")
    name, slurm, aver, difference = found.groups()
    if difference and difference not in DIFFERENCES:
        raise InternalError(f"conformance case {case_name}: no difference is called {difference!r}")
    return Row(name, slurm, aver or slurm, difference or "")


def choices_of(cell: str, value: str) -> tuple[str, ...]:
    """What may stand in a cell: `A;B` in a named cell is one or the other, from run to run; words are as they are.

    Of messages it is `A ;; B`.
    """
    if cell.rpartition(":")[2] == "messages":
        return tuple(value.split(" ;; "))
    return tuple(value.split(";")) if "." in cell.rpartition(":")[2] else (value,)


def cells_of(name: str, value: str) -> dict[str, str]:
    """A row's value as its named cells; a row of words is one cell."""
    kind = re.sub(r"\d+$", "", name.split(":")[-1])
    fields = FIELDS.get(kind, ())
    words = value.split()
    if len(words) != len(fields):
        return {name: value}
    return {f"{name}.{field}": word for field, word in zip(fields, words, strict=True)}
