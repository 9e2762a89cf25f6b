"""docs/llms.txt, made from docs/index.md: `python tests/llms_text.py` writes it."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
FILE = DOCS / "llms.txt"
HEAD = """\
# Aver

> Runs batch jobs, alone or as flows, on one machine or on Slurm, and tells the truth about how each of them ended: \
a verdict is made of evidence, unknown is said to be unknown, and nothing runs twice. Commands have --json with a \
schema; agents have `aver mcp` and `aver agent guide`; Python has `import aver`.

"""
SECTIONS = {"Use": "", "How-to": "how-to/", "Design": "design/"}
LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def llms_text() -> str:
    """Every page of the index with what it says, by section; pages to use the product first."""
    rows = re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \| (.*) \|$", (DOCS / "index.md").read_text(), re.MULTILINE)
    parts = []
    for title, prefix in SECTIONS.items():
        others = tuple(one for one in SECTIONS.values() if one and one != prefix)
        mine = [(path, text) for path, text in rows if path.startswith(prefix) and not path.startswith(others)]
        lines = [f"- [{path}]({path}): {LINK.sub(lambda found: found[1], text)}" for path, text in mine]
        parts.append(f"## {title}\n" + "\n".join(lines) + "\n")
    return HEAD + "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(llms_text())
