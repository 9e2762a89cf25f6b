"""`aver shell`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from slurm_commands import Slurm


def test_shell_runs_a_command_with_them(slurm: Slurm, tmp_path: Path) -> None:
    """`aver shell -- command` becomes the command, with its exit status; one that is not there is 127."""
    aver = [sys.executable, "-m", "aver", "shell", "--"]
    words = [*aver, "sh", "-c", "command -v srun; exit 7"]
    done = subprocess.run(words, env=slurm.environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"{slurm.home / 'bin' / 'srun'}\n", 7)
    done = subprocess.run([*aver, "no-such-command"], env=slurm.environment, capture_output=True, check=False)
    assert done.returncode == 127
