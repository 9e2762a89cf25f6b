"""The real Slurm that tests use: started once for all processes of a session, stopped after the last.

The lab's own lock and a count of its users make it start once and stop when the last user has left. A lab that ran
before is used and left.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LAB = Path(__file__).resolve().parents[1] / "scripts" / "slurm-lab"
ONLY_ROOT = "only root can start a real Slurm (scripts/slurm-lab)"


@dataclass(frozen=True)
class SlurmLab:
    """What one must know to use the lab."""

    configuration: str
    folder: Path
    user: str

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": self.configuration, "AVER_SLURM_LAB_USER": self.user}


def lab(action: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(LAB), action], env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"slurm-lab {action}: {done.stderr}"
    return done.stdout


@contextmanager
def counted(path: Path, change: int) -> Iterator[int]:
    """Add to the number of users in the file, and hold its lock meanwhile."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        users = int(file.read() or "0") + change
        file.truncate(0)
        file.write(str(users))
        file.flush()
        yield users


@contextmanager
def running_lab(base: Path) -> Iterator[SlurmLab]:
    """A real Slurm that runs, with an ordinary user to submit as. `base`: a folder that all users of the lab share."""
    shared = base / "slurm-lab-users"
    with counted(shared, +1):
        ran_before = subprocess.run([str(LAB), "status"], capture_output=True, check=False).returncode == 0
        if not ran_before:
            lab("start")
            shared.with_suffix(".ours").touch()
        words = shlex.split(lab("env").replace("export ", ""))
    settings = dict(word.split("=", 1) for word in words)
    try:
        yield SlurmLab(settings["SLURM_CONF"], Path(settings["AVER_SLURM_LAB"]), settings["AVER_SLURM_LAB_USER"])
    finally:
        with counted(shared, -1) as users:
            if users == 0 and shared.with_suffix(".ours").exists():
                lab("stop")
