"""The recorded outputs: readable in the one form that they promise, and free of this or that machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RECORDED = sorted((Path(__file__).resolve().parent / "recorded").glob("*.txt"))


def test_every_command_is_recorded() -> None:
    """There is a page for each of Slurm's commands that Aver serves."""
    assert {path.stem for path in RECORDED} == {"squeue", "sacct", "scontrol", "sinfo", "scancel", "sbatch", "srun"}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_blocks_have_a_command_and_an_exit_status(path: Path) -> None:
    """Each block starts with `$ command` and ends with `[exit N]`."""
    text = path.read_text()
    commands = re.findall(r"^\$ .+$", text, re.MULTILINE)
    assert len(commands) > 10
    assert all(command.startswith(f"$ {path.stem}") for command in commands)
    assert len(re.findall(r"^\[exit \d+\]$", text, re.MULTILINE)) == len(commands)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_no_machine_is_named(path: Path) -> None:
    """No temporary folder of whoever recorded them is left in the text."""
    assert "/tmp/aver" not in path.read_text()
