"""Read the conformance cases from their text files, strictly: an error names the file and the line.

A case is a heading, its marks, its acts with the scripts that they submit, and its rows, in this order:

    == limits/plain  The time limit passes
    @slow
    > sbatch --time={limit}
    | sleep 300
    scontrol  TIMEOUT 0:15 0:0 TimeLimit
    sacct     TIMEOUT 0:0 => TIMEOUT 0:15 (sacct-as-scontrol)

docs/en/reference/conformance.md has the whole grammar.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from aver.conformance.model import (
    ONLY,
    VERSIONS,
    Act,
    Alone,
    Case,
    Command,
    Forgotten,
    Look,
    Operator,
    Row,
    Settled,
    Submit,
    When,
    release,
)
from aver.errors import InternalError

FOLDER = Path(__file__).with_name("cases")
NEEDS = frozenset({"memory", "nodes", "operator", "partitions"})
ROWS = frozenset("scontrol sacct batch derived attempts said messages sbatch srun stdout".split())
"""Rows that the runner fills for every job, beside `step0`, `step1` … and those that acts name."""


class CaseFileError(InternalError):
    """A case file that can't be read: `FILE:LINE: what is wrong`."""


@dataclass(frozen=True)
class Line:
    """A line of a case file; `...` lines are joined to the line that they continue."""

    path: str
    number: int
    text: str

    def error(self, problem: str) -> CaseFileError:
        return CaseFileError(f"{self.path}:{self.number}: {problem}")


@dataclass
class Draft:
    """A case while its lines are read."""

    heading: Line
    name: str
    shows: str
    needs: frozenset[str] = frozenset()
    is_slow: bool = False
    acts: list[Act] = field(default_factory=list)
    submit: Submit | None = None
    """The last sbatch while the lines of its script are read."""
    script: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def finish_submit(self, line: Line) -> None:
        """Add the last sbatch with its script, before whatever follows it."""
        if self.submit is None:
            return
        if not self.script:
            raise line.error("the sbatch above has no script: a line `| …`, or `|` for an empty one")
        self.acts.append(replace(self.submit, script="\n".join(self.script)))
        self.submit, self.script = None, []

    def case(self, line: Line) -> Case:
        """The whole case. Raises CaseFileError if it does nothing or expects nothing."""
        self.finish_submit(line)
        if not self.acts or not self.rows:
            raise self.heading.error(f"{self.name} has no {'rows' if self.acts else 'acts'}")
        return Case(self.name, self.shows, tuple(self.acts), tuple(self.rows), self.needs, self.is_slow)


@cache
def differences() -> Mapping[str, str]:
    """Where Aver intends to print something else than Slurm, and why, by the names that rows use."""
    path = FOLDER / "differences.txt"
    return read_differences(str(path), path.read_text(encoding="utf-8"))


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order of the files' names. Raises CaseFileError."""
    paths = sorted(FOLDER.glob("*.cases"))
    return tuple(
        case
        for path in paths
        for case in read_cases(str(path), path.stem, path.read_text(encoding="utf-8"), differences())
    )


def read_differences(path: str, text: str) -> dict[str, str]:
    """The file of intended differences: a name and a sentence each."""
    found: dict[str, str] = {}
    for line in logical_lines(path, text):
        name, _, why = line.text.partition(" ")
        if not re.fullmatch(r"[a-z-]+", name) or not why.strip() or name in found:
            raise line.error("expected the name of a new difference and its reason")
        found[name] = why.strip()
    return found


def read_cases(path: str, theme: str, text: str, known: Mapping[str, str]) -> tuple[Case, ...]:
    """The cases of one file. `known` are the differences that its rows may name. Raises CaseFileError."""
    found: list[Case] = []
    draft: Draft | None = None
    line = Line(path, 1, "")
    for line in logical_lines(path, text):
        if line.text.startswith("=="):
            if draft:
                found.append(draft.case(line))
            draft = read_heading(line, theme)
            if draft.name in {case.name for case in found}:
                raise line.error(f"a second case is called {draft.name}")
        elif draft is None:
            raise line.error("expected a case: `== theme/name  What it shows`")
        else:
            read_line(line, draft, known)
    if draft is None:
        raise line.error("no case")
    return (*found, draft.case(line))


def logical_lines(path: str, text: str) -> Iterator[Line]:
    """The lines that mean something: comments and empty lines left out, continued lines joined with a space."""
    held: Line | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line = Line(path, number, raw)
        if raw != raw.rstrip() and not raw.startswith("|"):
            raise line.error("white space at the end of the line")
        if raw.startswith("... "):
            if held is None or held.text.startswith(("==", "@", ">", "|")):
                raise line.error("`...` continues a row, and there is none above")
            held = replace(held, text=f"{held.text} {raw[4:].strip()}")
            continue
        if held:
            yield held
        held = line if raw and not raw.startswith("#") else None
    if held:
        yield held


def read_heading(line: Line, theme: str) -> Draft:
    found = re.fullmatch(r"== ([\w-]+)/([\w-]+)  (\S.*)", line.text)
    if not found:
        raise line.error("expected `== theme/name  What it shows`, with two spaces between")
    if found[1] != theme:
        raise line.error(f"a case of this file is called {theme}/…, not {found[1]}/…")
    return Draft(line, f"{found[1]}/{found[2]}", found[3])


def read_line(line: Line, draft: Draft, known: Mapping[str, str]) -> None:
    """One line below a heading."""
    if line.text.startswith("|"):
        if draft.submit is None or line.text[1:2] not in ("", " "):
            raise line.error("a script is lines `| …` below an sbatch")
        draft.script.append(line.text[2:].replace("{cr}", "\r"))
        return
    draft.finish_submit(line)
    if line.text.startswith("@"):
        if draft.acts or draft.rows:
            raise line.error("marks come before acts")
        read_mark(line, draft)
    elif line.text.startswith(">"):
        if draft.rows:
            raise line.error("acts come before rows")
        act = read_act(line, draft)
        if isinstance(act, Submit):
            draft.submit = act
        else:
            draft.acts.append(act)
    else:
        draft.rows.append(read_row(line, draft, known))


def read_mark(line: Line, draft: Draft) -> None:
    match line.text.split(" "):
        case ["@slow"] if not draft.is_slow:
            draft.is_slow = True
        case ["@needs", *needs] if needs and not draft.needs and NEEDS.issuperset(needs):
            draft.needs = frozenset(needs)
        case _:
            raise line.error(f"expected `@slow` or `@needs` with any of {' '.join(sorted(NEEDS))}, each once")


def read_act(line: Line, draft: Draft) -> Act:
    """`> [job:] [NAME=value …] verb words`."""
    found = re.fullmatch(r"> (?:(\w+): )?(\S.*)", line.text)
    if not found:
        raise line.error("expected `> verb …` or `> job: verb …`")
    try:
        words = shlex.split(found[2])
    except ValueError as error:
        raise line.error(f"can't split into words: {error}") from None
    variables: list[tuple[str, str]] = []
    while words and re.match(r"[A-Z_]+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        variables.append((name, value))
    act = act_of(words, found[1] or ONLY, tuple(variables))
    if act is None or (variables and not isinstance(act, Submit)):
        raise line.error(f"not an act: {found[2]}")
    if isinstance(act, Command | Operator):
        if found[1]:
            raise line.error(f"a command belongs to no job: drop `{found[1]}:`")
    elif isinstance(act, Submit | Alone):
        if act.job in jobs_of(draft):
            raise line.error(f"a second job is called {act.job}")
    elif act.job.split("_")[0] not in jobs_of(draft):
        raise line.error(f"no job is called {act.job} above")
    return act


def act_of(words: list[str], job: str, variables: tuple[tuple[str, str], ...]) -> Act | None:
    """The act of these words, without a script; None if there is none."""
    match words:
        case ["sbatch", *options]:
            return Submit("", tuple(options), job, variables)
        case ["srun", *arguments] if arguments:
            return Alone(tuple(arguments), job)
        case ["when", "says", text]:
            return When(says=text, job=job)
        case ["when", state]:
            return When(state, job=job)
        case ["when", state, reason]:
            return When(state, reason, job=job)
        case ["look", name]:
            return Look(name, job)
        case ["settled"]:
            return Settled(job)
        case ["forgotten"]:
            return Forgotten(job)
        case ["run", *command, "->", row] if command:
            return Command(tuple(command), row)
        case ["run", *command] if command and "->" not in command:
            return Command(tuple(command))
        case ["operator", *command] if command:
            return Operator(tuple(command))
        case _:
            return None


def jobs_of(draft: Draft) -> set[str]:
    return {act.job for act in draft.acts if isinstance(act, Submit | Alone)}


def read_row(line: Line, draft: Draft, known: Mapping[str, str]) -> Row:
    """`[job:]row  Slurm's cells [=> Aver's cells (difference)] [[>=release]]`."""
    pattern = r"(\S+) +(\S.*?)(?: +=> +(\S.*?) +\(([\w-]+)\))?(?: +\[>=(\d\d)\.(\d\d)\])?"
    found = re.fullmatch(pattern, line.text)
    if found is None or " => " in found[2] or re.search(r" \[\W*[\d.]+\]$", found[2]):
        raise line.error("expected `row  cells`, then `=> cells (difference)` and `[>=release]` where they are needed")
    name, slurm, aver, difference = found[1], found[2], found[3], found[4] or ""
    if difference and difference not in known:
        raise line.error(f"no difference is called {difference}")
    if difference and aver == slurm:
        raise line.error(f"{difference}: the cells do not differ")
    row = Row(name, slurm, aver or slurm, difference, (int(found[5]), int(found[6])) if found[5] else None)
    check_row_name(line, draft, name)
    check_order(line, row, [other for other in draft.rows if other.name == name])
    return row


def check_row_name(line: Line, draft: Draft, name: str) -> None:
    """Refuse a row that nobody would fill."""
    job, _, kind = name.rpartition(":")
    named = {act.name for act in draft.acts if isinstance(act, Look) and act.job == (job or ONLY)}
    if not job:
        named |= {act.row for act in draft.acts if isinstance(act, Command)}
    is_of_a_job = kind in ROWS or re.fullmatch(r"step\d+", kind)
    if kind in named or (is_of_a_job and (job or ONLY).split("_")[0] in jobs_of(draft)):
        return
    raise line.error(f"no job and no act of this case gives the row {name}")


def check_order(line: Line, row: Row, before: list[Row]) -> None:
    """Lines of one row begin with the oldest release."""
    if row.since and row.since not in VERSIONS[1:]:
        raise line.error(f"expectations change only at {', '.join(map(release, VERSIONS[1:]))}")
    if before and (row.since is None or row.since <= (before[-1].since or VERSIONS[0])):
        raise line.error(f"{row.name} stands here again: its lines begin with the oldest release, each of another")
