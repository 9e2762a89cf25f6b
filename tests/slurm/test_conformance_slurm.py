"""The matrix against the real Slurm: every expected cell is what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Protocol

import pytest


class Lab(Protocol):
    @property
    def environment(self) -> dict[str, str]: ...


@pytest.mark.timeout(420)
def test_every_cell_is_what_slurm_prints(slurm_lab: Lab) -> None:
    """All cases, as an ordinary user: no cell differs from its expectation, and no case is late."""
    done = subprocess.run(
        [sys.executable, "-m", "aver.conformance", "--against", "slurm", "--json", "--timeout", "300"],
        env=slurm_lab.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    (report,) = json.loads(done.stdout)
    late = [f"{case['name']}: {case['trouble']}" for case in report["cases"] if case["trouble"]]
    wrong = [
        f"{cell['case']} {cell['cell']}: expected {cell['expected']!r}, got {cell['got']!r}"
        for case in report["cases"]
        if not case["skipped"]
        for cell in case["cells"]
        if not cell["holds"]
    ]
    assert not late + wrong, "\n".join(late + wrong)
    assert done.returncode == 0, done.stderr
    skipped = {case["skipped"] for case in report["cases"] if case["skipped"]}
    assert all("cgroups are not writable" in reason for reason in skipped), skipped
