"""The matrix against the real Slurm: every expected cell is what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from typing import Any, Protocol

import pytest


class Lab(Protocol):
    @property
    def environment(self) -> dict[str, str]: ...


FEW = 4


def run_cases(lab: Lab, *names: str) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """All cases, or these: what was seen, and by case what is not as the table says."""
    done = subprocess.run(
        [
            sys.executable, "-m", "aver.conformance", "--against", "slurm", "--json", "--timeout", "300",
            *(f"--case={name}" for name in names),
        ],
        env=lab.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    (report,) = json.loads(done.stdout)
    wrong: dict[str, list[str]] = {}
    for case in report["cases"]:
        found = [case["trouble"]] if case["trouble"] else []
        for cell in () if case["skipped"] else case["cells"]:
            if not cell["holds"]:
                found.append(f"{cell['cell']}: expected {cell['expected']!r}, got {cell['got']!r}")
        if found:
            wrong[case["name"]] = found
    assert done.returncode == (1 if wrong else 0), done.stderr
    return report["cases"], wrong


@pytest.mark.timeout(600)
def test_every_cell_is_what_slurm_prints(slurm_lab: Lab) -> None:
    """All cases, as an ordinary user: no cell differs from the table, and no case is late.

    A busy controller hears a command twice where its answer was late. So a few cases that differ are run once more,
    alone: what the table has wrong differs again.
    """
    cases, wrong = run_cases(slurm_lab)
    if 0 < len(wrong) <= FEW:
        warnings.warn(f"run once more: {wrong}", stacklevel=1)
        _, wrong = run_cases(slurm_lab, *wrong)
    assert not wrong
    skipped = {case["skipped"] for case in cases if case["skipped"]}
    assert all("cgroups are not writable" in reason for reason in skipped), skipped
