"""`aver agent guide`: every command line in it works as it stands."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

FLOW = """\
defaults: {kill_wait: 1s}
jobs:
  prep: {run: "true"}
  train:
    needs: [prep]
    time: 1s
    run: |
      echo training
      if [ "$AVER_ATTEMPT" = 1 ]; then sleep 300; fi
  lint: {run: "[ $AVER_ATTEMPT = 2 ]"}
"""
MOST_BYTES = 2500


def aver(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aver", *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_command_line_of_the_guide_works(aver_home: Path, tmp_path: Path) -> None:
    """In the order of the guide, with a flow that needs recovery and a retry: it is COMPLETED in the end."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "flow.yaml").write_text(FLOW)
    guide = aver(folder, "agent", "guide").stdout
    assert len(guide.encode()) <= MOST_BYTES
    lines = [line.strip() for line in guide.splitlines() if line.startswith("    ")]
    assert len(lines) > 10
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "aver"
        done = aver(folder, *words)
        assert done.returncode == 0, f"{line}: {done.returncode} {done.stderr}"
        if words[0] == "submit" and words[-1] == "flow.yaml":
            assert done.stdout == "1\n"
    assert aver(folder, "watch", "1", "--exit-status").returncode == 0
