"""A user's program under `mypy --strict`: results have the types of their functions, and mistakes are found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
PROGRAM = Path(__file__).parent / "typed_program.py"
MISTAKES = """\
import aver

executor = aver.Executor(max_workers="4")
number: int = executor.submit(str, 1).result()
executor.submit(len, "x").result().upper()
aver.Flow("f").job("a", run=7)
aver.Run("3")
aver.Run(3)["a"].attempts[0].reason.upper()
aver.Run(3).no_such_thing
"""


def mypy(folder: Path, program: Path) -> subprocess.CompletedProcess[str]:
    """As a user runs it, outside of the repository and with nothing but the installed package."""
    words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder / "cache")]
    return subprocess.run([*words, program], cwd=folder, capture_output=True, text=True, timeout=280, check=False)


def test_a_program_without_mistakes_has_none(tmp_path: Path) -> None:
    """What each expression is, the program asserts itself."""
    done = mypy(tmp_path, PROGRAM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_mistake_is_found(tmp_path: Path) -> None:
    program = tmp_path / "mistakes.py"
    program.write_text(MISTAKES)
    found = {int(line) for line in re.findall(r"^mistakes\.py:(\d+): error", mypy(tmp_path, program).stdout, re.M)}
    assert found == {3, 4, 5, 6, 7, 8, 9}
