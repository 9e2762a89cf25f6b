"""`aver env`."""

from __future__ import annotations

import subprocess
import sys

from slurm_commands import Slurm


def test_env_puts_the_commands_on_path(slurm: Slurm) -> None:
    """`eval "$(aver env)"`: sbatch is this home's, in front of any other."""
    script = 'eval "$("$0" -m aver env)" && command -v sbatch && sbatch --version'
    environment = {**slurm.environment, "SHELL": "/bin/sh"}
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == str(slurm.home / "bin" / "sbatch")
    for shell, word in (("fish", "set -gx PATH "), ("csh", "setenv PATH "), ("sh", "export PATH=")):
        line = subprocess.run(
            [sys.executable, "-m", "aver", "env", "--shell", shell],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert line.startswith(f"{word}{slurm.home / 'bin'}")
