"""The parts of docs/conformance.md that follow from the cases, as Markdown."""

from __future__ import annotations

from collections import Counter

from aver.conformance.cases import CASES
from aver.conformance.differences import DIFFERENCES

BEGIN = "<!-- from the cases: python -m aver.conformance --page -->"
END = "<!-- end of what comes from the cases -->"


def generated_part() -> str:
    """How many cases there are of each theme, and every intended difference with the cells in which it shows."""
    themes = Counter(case.theme for case in CASES)
    lines = [
        BEGIN,
        "",
        f"{len(CASES)} cases: " + ", ".join(f"{count} {theme}" for theme, count in themes.items()) + ".",
        "",
    ]
    lines += ["## Intended differences", ""]
    for name, why in DIFFERENCES.items():
        lines += [f"### {name}", "", why, "", "| case | row | Slurm 22.05 | Aver |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{case.name}` | {row.name} | `{row.slurm}` | `{row.aver}` |"
            for case in CASES
            for row in case.rows
            if row.difference == name
        ]
        lines.append("")
    return "\n".join([*lines, END])


def in_step(page: str) -> str:
    """The page with its generated part renewed."""
    before, _, rest = page.partition(BEGIN)
    return before + generated_part() + rest.partition(END)[2]
