"""Names of output files with Slurm's patterns: `%j %J %x %u %N %a %A %%`, and widths such as `%4j`.

A pattern that is not known stays as it is. What is put in never adds a folder: slashes in a
job's name become `_`. A backslash anywhere turns the patterns off and is taken out, as in Slurm.
"""

from __future__ import annotations

import re

NO_ARRAY_TASK = 4294967294  # what Slurm writes for %a outside of an array
MAX_WIDTH = 10
_PATTERN = re.compile(r"%([0-9]*)([%jJxuNnaAst])")


class Facts:
    """What the patterns stand for. `run` is %A; `member` is %a, its number in its matrix; %s and %t are a step's."""

    __slots__ = ("job", "member", "name", "node", "run", "step", "task", "user")

    def __init__(
        self,
        job: int,
        run: int,
        name: str,
        user: str,
        node: str,
        member: int | None = None,
        step: int | None = None,
        task: int | None = None,
    ) -> None:
        self.job = job
        self.run = run
        self.name = name
        self.user = user
        self.node = node
        self.member = member
        self.step = step
        self.task = task


def expand_pattern(pattern: str, facts: Facts) -> str:
    """The file name that the pattern stands for."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    return _PATTERN.sub(lambda match: _value(match, facts), pattern) if "%" in pattern else pattern


def patterns_in(text: str) -> frozenset[str]:
    """The letters of Slurm's patterns in it."""
    return frozenset() if "\\" in text else frozenset(match[2] for match in _PATTERN.finditer(text))


def names_task(pattern: str) -> bool:
    """Whether each task of a step has a file of its own."""
    return "t" in patterns_in(pattern)


def _value(match: re.Match[str], facts: Facts) -> str:
    width = min(int(match[1] or 0), MAX_WIDTH) if len(match[1]) < 9 else MAX_WIDTH
    member = NO_ARRAY_TASK if facts.member is None else facts.member
    match match[2]:
        case "%":
            return "%"
        case "J" if facts.step is not None:
            return f"{facts.job:0{width}d}.{facts.step}"
        case "j" | "J":
            return f"{facts.job:0{width}d}"
        case "A":
            return f"{facts.run:0{width}d}"
        case "a":
            return f"{member:0{width}d}"
        case "n":
            return f"{0:0{width}d}"
        case "N":
            return safe_part(facts.node.partition(".")[0])
        case "u":
            return safe_part(facts.user)
        case "x":
            return safe_part(facts.name)
        case "s" if facts.step is not None:
            return f"{facts.step:0{width}d}"
        case "t" if facts.task is not None:
            return f"{facts.task:0{width}d}"
        case _:  # %s and %t belong to steps
            return match[0]


def safe_part(text: str) -> str:
    """The text as part of a file name: no slash, no NUL, and not `.` or `..` alone."""
    part = text.replace("/", "_").replace("\0", "_")[:200]
    return part.replace(".", "_") if part in (".", "..") else part
