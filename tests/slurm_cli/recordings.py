"""What a real Slurm 22.05.8 printed for the session that `queue_past.fill` copies: jobs 31 to 37 of bob on node n1."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "recorded"


@cache
def recorded(page: str) -> dict[str, list[str]]:
    """The lines that each command printed."""
    found: dict[str, list[str]] = {}
    for block in re.split(r"^\$ ", (FOLDER / f"{page}.txt").read_text(), flags=re.MULTILINE)[1:]:
        command, _, output = block.partition("\n")
        found[command] = output.split("\n")[:-1]
    return found


def keys(text: str) -> list[str]:
    """The names before the equals signs, in their order."""
    return re.findall(r"(?:^|\s)([A-Za-z][\w/:]*)=", text)


def shape(line: str) -> str:
    """A line with its values blurred, so that widths and places can be compared."""
    return re.sub(r"\S", "x", line)
