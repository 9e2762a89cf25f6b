"""Names of output files with Slurm's patterns: `%j %x %u %N %a %A %%`, and widths such as `%4j`.

A pattern that is not known stays as it is. What is put in never adds a folder: slashes in a
job's name become `_`. A backslash anywhere turns the patterns off and is taken out, as in Slurm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NO_ARRAY_TASK = 4294967294  # what Slurm writes for %a outside of an array
MAX_WIDTH = 10
_PATTERN = re.compile(r"%([0-9]*)([%jJxuNnaAst])")


@dataclass(frozen=True, slots=True)
class PatternValues:
    job: int
    name: str
    user: str
    node: str
    array_job: int | None = None  # None: the job itself
    array_task: int | None = None


def expand_pattern(pattern: str, values: PatternValues) -> str:
    """The file name that the pattern stands for."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    return _PATTERN.sub(lambda match: _value(match, values), pattern)


def _value(match: re.Match[str], values: PatternValues) -> str:
    width = min(int(match[1] or 0), MAX_WIDTH) if len(match[1]) < 9 else MAX_WIDTH
    array_job = values.job if values.array_job is None else values.array_job
    array_task = NO_ARRAY_TASK if values.array_task is None else values.array_task
    match match[2]:
        case "%":
            return "%"
        case "j" | "J":
            return f"{values.job:0{width}d}"
        case "A":
            return f"{array_job:0{width}d}"
        case "a":
            return f"{array_task:0{width}d}"
        case "n":
            return f"{0:0{width}d}"
        case "N":
            return safe_part(values.node.partition(".")[0])
        case "u":
            return safe_part(values.user)
        case "x":
            return safe_part(values.name)
        case _:  # %s and %t belong to steps
            return match[0]


def safe_part(text: str) -> str:
    """The text as part of a file name: no slash, no NUL, and not `.` or `..` alone."""
    part = text.replace("/", "_").replace("\0", "_")[:200]
    return part.replace(".", "_") if part in (".", "..") else part
