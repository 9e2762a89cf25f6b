"""docs/llms.txt, made from docs/en/index.md: `python tests/llms_text.py` writes it."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
INDEX = DOCS / "en" / "index.md"
FILE = DOCS / "llms.txt"
HEAD = """\
# Aver

> Runs batch jobs, alone or as flows, on one machine or on Slurm, and tells the truth about how each of them ended: \
a verdict is made of evidence, unknown is said to be unknown, and nothing runs twice. Commands have --json with a \
schema; agents have `aver mcp` and `aver agent guide`; Python has `import aver`.

"""
LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def llms_text() -> str:
    """Every page of the index's tables with what it says, by the index's sections."""
    parts = []
    for title, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", INDEX.read_text(), re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| \[([^]]+)\]\(([^)]+)\) \| (.*) \|$", body, re.MULTILINE)
        lines = [f"- [{name}]({path_of(link)}): {LINK.sub(lambda found: found[1], text)}" for name, link, text in rows]
        if lines:
            parts.append(f"## {title}\n" + "\n".join(lines) + "\n")
    return HEAD + "\n".join(parts)


def path_of(link: str) -> str:
    """The link of the index as seen from docs/llms.txt."""
    slash = "/" if link.endswith("/") else ""
    return Path(os.path.relpath(INDEX.parent / link, DOCS)).as_posix() + slash


if __name__ == "__main__":
    FILE.write_text(llms_text())
