"""The coordinator in the foreground, as a developer starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_without_a_descriptor_it_stays_in_the_foreground(tmp_path: Path) -> None:
    """`python -m aver.coordinator HOME` says "ready", logs to the terminal, and leaves when it is stopped."""
    home = str(tmp_path / "home")
    command = [sys.executable, "-m", "aver.coordinator", home]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    subprocess.run([sys.executable, "-m", "aver", "stop"], env=os.environ | {"AVER_HOME": home}, check=True)
    _, logged = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"ready, pid {process.pid}" in logged
