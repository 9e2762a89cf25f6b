"""`aver slurm` without a cluster; tests/slurm has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_past import Aver


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sacct", "1"), "no number at Slurm is known for run 1"),
        (("sacct", "77"), "no job or run 77"),
        (("squeue", "1"), "no such command 'squeue'"),
    ],
)
def test_what_no_cluster_has_is_one_line(past: Path, call: Aver, words: tuple[str, ...], said: str) -> None:
    """A run of this machine, a run that never was, a command that there is not."""
    answer = call("slurm", *words)
    assert answer.status == 2
    assert answer.err.startswith("aver: ")
    assert said in answer.err
    assert answer.err.count("\n") == 1
