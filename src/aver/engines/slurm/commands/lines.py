"""Lines of fields, and the sentences that commands print instead of them."""

from __future__ import annotations

import re

from aver.engines.slurm.commands.fields import SEPARATOR

_TROUBLE = re.compile(
    r"slurm_load_\w+ error|unable to contact|timed out|zero bytes|authentication|connection (refused|failure|reset)"
    r"|problem talking to the database|unable to connect to database"
    r"|error talking to the database|message (send|receive) failure|slurmdbd: (error|fatal)",
    re.IGNORECASE,
)


def split_records(text: str, width: int, end: str = "") -> tuple[list[list[str]], list[str]]:
    """The records of `width` fields, and the lines that belong to none.

    The last field may hold newlines: a line with too few fields belongs to the record before it, as long as that one
    has not ended with `end`, if there is such a mark. The mark is left off.
    """
    records: list[list[str]] = []
    strays: list[str] = []
    is_open = False
    for line in text.removesuffix("\n").split("\n") if text else ():
        fields = line.split(SEPARATOR, width - 1)
        if len(fields) == width:
            records.append(fields)
        elif is_open:
            records[-1][-1] += f"\n{line}"
        else:
            if line.strip():
                strays.append(line)
            continue
        is_open = not end or not records[-1][-1].endswith(end)
    if end and is_open and records:
        strays.append(SEPARATOR.join(records.pop()))
    return [[*fields[:-1], fields[-1].removesuffix(end)] for fields in records], strays


def trouble_in(text: str) -> str:
    """The first line that says that the question was not answered; empty if there is none. Warnings are not such."""
    return next((line.strip()[:500] for line in text.splitlines() if _TROUBLE.search(line)), "")


def last_line(text: str) -> str:
    """The last line with something in it, at most 500 letters of it."""
    return next((line.strip()[:500] for line in reversed(text.splitlines()) if line.strip()), "")


def error_text(text: str) -> str:
    """The first line of a command's errors, which names the cause, and the last, which says what came of it."""
    first = next((line.strip()[:500] for line in text.splitlines() if line.strip()), "")
    return "; ".join(dict.fromkeys(line for line in (first, last_line(text)) if line))
