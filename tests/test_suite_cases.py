"""The list of the cases of Slurm's own test suite, and the page that gives its figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "slurm" / "suite_cases.txt"
PAGES = [ROOT / "docs" / language / "reference" / "slurm-commands.md" for language in ("en", "zh")]
RESULTS = {"pass", "fail", "skip", "timeout"}


def rows() -> list[tuple[str, str, str, str]]:
    """Case, result on 22.05, result on Aver, reason."""
    lines = [line for line in CASES.read_text().splitlines() if not line.startswith("#")]
    return [
        (case, real, aver, " ".join(reason)) for case, real, aver, *reason in (line.split(None, 3) for line in lines)
    ]


def test_every_case_ran_on_both_and_is_listed_once() -> None:
    assert all(real in RESULTS and aver in RESULTS for _, real, aver, _ in rows())
    names = [case for case, *_ in rows()]
    assert len(names) == len(set(names))


def test_every_case_that_passes_on_slurm_and_not_here_has_a_reason() -> None:
    assert [case for case, real, aver, reason in rows() if real == "pass" and aver != "pass" and not reason] == []


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
def test_the_page_has_the_figures_and_the_cases_that_fail(page: Path) -> None:
    section = page.read_text().partition("slurm-22-05-8-1")[2].partition("\n## ")[0]
    real = [row for row in rows() if row[1] == "pass"]
    counted = [row for row in real if not row[3].startswith("n/a")]
    passed = [row for row in counted if row[2] == "pass"]
    figures = {int(number) for number in re.findall(r"(?<![\w.-])\d+(?![\w.-]|\.\d)", section)}
    assert {len(rows()), len(real), len(counted), len(passed)} <= figures
    for case, _, aver, _ in real:
        name = re.sub(r"commands/|features/|\.py::.*", "", case)
        if aver != "pass":
            assert re.search(rf"{re.escape(name)}(?!\d)", section), f"{name} is not on the page"
