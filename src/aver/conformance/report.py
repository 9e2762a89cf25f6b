"""Compare outcomes with expectations, cell by cell: a table, JSON, and a part of docs/en/reference/conformance.md."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from dataclasses import asdict, dataclass

from aver.conformance.model import OLDEST, VERSIONS, Version, cells_of, choices_of, release
from aver.conformance.parser import all_cases, differences
from aver.conformance.runner import Outcome

BEGIN = "<!-- from the cases: python -m aver.conformance --page -->"
END = "<!-- end of what comes from the cases -->"


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix. `difference` names an intended difference between Slurm's value and Aver's."""

    case: str
    cell: str
    slurm: str
    aver: str
    expected: str
    got: str
    difference: str

    @property
    def holds(self) -> bool:
        return self.got == self.expected or self.got in choices_of(self.cell, self.expected)


def compare(outcome: Outcome, target: str) -> list[Cell]:
    """The cells of one case, compared with the values of `target`: `slurm` or `aver`."""
    found: list[Cell] = []
    for row in outcome.case.rows:
        value = outcome.values.get(row.name, "none")
        parts = [cells_of(row.name, text) for text in (row.slurm, row.aver, value)]
        if len({tuple(part) for part in parts}) > 1:
            parts = [{row.name: text} for text in (row.slurm, row.aver, value)]
        slurm, aver, got = parts
        for name in slurm:
            expected = slurm[name] if target == "slurm" else aver[name]
            difference = row.difference if slurm[name] != aver[name] else ""
            found.append(Cell(outcome.case.name, name, slurm[name], aver[name], expected, got[name], difference))
    return found


@dataclass(frozen=True)
class Report:
    """All outcomes against one target. `version` is the one that the commands print; None if they print none."""

    target: str
    version: str | None
    outcomes: list[Outcome]
    seconds: float

    @property
    def cells(self) -> list[Cell]:
        return [cell for outcome in self.outcomes if not outcome.skipped for cell in compare(outcome, self.target)]

    @property
    def wrong(self) -> list[Cell]:
        return [cell for cell in self.cells if not cell.holds]

    @property
    def holds(self) -> bool:
        return not self.wrong and not any(outcome.trouble for outcome in self.outcomes)


def release_of(version: str | None) -> Version:
    """The release whose expectations apply to commands of this version: the newest that is not newer.

    Commands that are older, or that print no version, are compared with the oldest release.
    """
    major, minor = (*map(int, version.split(".")[:2]),) if version else OLDEST
    return max((known for known in VERSIONS if known <= (major, minor)), default=OLDEST)


def as_table(reports: list[Report], which: str) -> str:
    """The cells side by side: Slurm's value, Aver's where a difference is intended, and what each target printed.

    `which` is "all", or "wrong" for the cells that differ and the cases that were skipped or late.
    """
    slurm = f"Slurm {release(release_of(reports[0].version))}"
    heads = ["case", "cell", slurm, "Aver intends", *(f"got: {report.target}" for report in reports), "verdict"]
    rows: list[list[str]] = []
    for place, outcome in enumerate(reports[0].outcomes):
        outcomes = [report.outcomes[place] for report in reports]
        for report, other in zip(reports, outcomes, strict=True):
            if other.skipped or other.trouble:
                note = f"skipped: {other.skipped}" if other.skipped else f"TROUBLE: {other.trouble}"
                rows.append([outcome.case.name, report.target, note])
        rows += cell_rows(reports, outcomes, which)
    widths = [
        max([len(head), *(len(row[at]) for row in rows if len(row) == len(heads))]) for at, head in enumerate(heads)
    ]
    widths = [min(width, 44) for width in widths]
    return "\n".join(
        "  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=False)).rstrip()
        for row in [heads, *rows]
    )


def cell_rows(reports: list[Report], outcomes: list[Outcome], which: str) -> list[list[str]]:
    """One case's lines of the table."""
    found: dict[str, list[Cell | None]] = {}
    for at, (report, outcome) in enumerate(zip(reports, outcomes, strict=True)):
        for cell in compare(outcome, report.target) if not outcome.skipped else []:
            found.setdefault(cell.cell, [None] * len(reports))[at] = cell
    rows = []
    for name, cells in found.items():
        seen = [cell for cell in cells if cell is not None]
        if which == "wrong" and all(cell.holds for cell in seen):
            continue
        verdict = "ok" if all(cell.holds for cell in seen) else "WRONG"
        intended = f", intended: {seen[0].difference}" if seen[0].difference else ""
        got = [cell.got if cell else "-" for cell in cells]
        aver = seen[0].aver if seen[0].difference else "the same"
        rows.append([seen[0].case, name, seen[0].slurm, aver, *got, verdict + intended])
    return rows


def summary(report: Report) -> str:
    """One line: the release, and how many cases and cells are as expected, not, skipped and late."""
    skipped = sum(bool(outcome.skipped) for outcome in report.outcomes)
    late = sum(bool(outcome.trouble) for outcome in report.outcomes)
    cells = report.cells
    return (
        f"{report.target}: version {report.version or 'unknown'}, expectations of Slurm "
        f"{release(release_of(report.version))}: {len(report.outcomes)} cases, {len(cells)} cells, "
        f"{len(cells) - len(report.wrong)} as expected, {len(report.wrong)} not, "
        f"{late} cases not in time, {skipped} skipped, {report.seconds:.0f} s"
    )


def as_json(reports: list[Report]) -> str:
    """All reports, with every cell, as one document."""
    return json.dumps(
        [
            {
                "target": report.target,
                "version": report.version,
                "release": release(release_of(report.version)),
                "holds": report.holds,
                "seconds": round(report.seconds, 1),
                "cases": [
                    {
                        "name": outcome.case.name,
                        "shows": outcome.case.shows,
                        "skipped": outcome.skipped or None,
                        "trouble": outcome.trouble or None,
                        "values": outcome.values,
                        "cells": [{**asdict(cell), "holds": cell.holds} for cell in compare(outcome, report.target)],
                    }
                    for outcome in report.outcomes
                ],
            }
            for report in reports
        ],
        indent=1,
    )


def as_tables(report: Report) -> str:
    """What was printed, as rows of case files: to write a new case, or to look at another Slurm."""
    usual = ("scontrol", "sacct", "batch", "step", "said")
    blocks = []
    for outcome in report.outcomes:
        named = {row.name for row in outcome.case.rows}
        rows = [
            f"{name:9} {value}"
            for name, value in outcome.values.items()
            if name in named or (name.split(":")[-1].rstrip("0123456789") in usual and value != "none")
        ]
        blocks.append("\n".join([f"== {outcome.case.name}  {outcome.trouble or outcome.case.shows}", *rows]))
    return "\n\n".join(blocks) + "\n"


def generated_part() -> str:
    """The part of docs/en/reference/conformance.md that follows from the cases: counts and intended differences."""
    cases = all_cases()
    themes = Counter(case.theme for case in cases)
    lines = [
        BEGIN,
        "",
        *_wrapped(f"{len(cases)} cases: " + ", ".join(f"{count} {theme}" for theme, count in themes.items()) + "."),
        "",
        "## Intended differences",
        "",
    ]
    for name, why in differences().items():
        lines += [f"### {name}", "", *_wrapped(why), ""]
        lines += [f"| case | row | Slurm {release(OLDEST)} | Aver |", "| --- " * 4 + "|"]
        lines += [
            f"| `{case.name}` | {row.name}{f' from {release(row.since)} on' if row.since else ''} "
            f"| `{row.slurm}` | `{row.aver}` |"
            for case in cases
            for row in case.rows
            if row.difference == name
        ]
        lines.append("")
    return "\n".join([*lines, END])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def renew_page(page: str) -> str:
    """The page with its generated part renewed."""
    before, _, rest = page.partition(BEGIN)
    return before + generated_part() + rest.partition(END)[2]
