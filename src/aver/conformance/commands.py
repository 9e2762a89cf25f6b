"""Slurm's commands as one set: where they are, who runs them, and how one of them is run.

Every call has a timeout and gets the caller's environment without the variables that change what the commands do.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from aver.errors import UnreachableError, UsageError

PROGRAMS = ("sbatch", "srun", "squeue", "sacct", "scontrol", "scancel")
SLURMS_CLOCKS = {"limit": "1", "lead": "50", "deadline": "65", "later": "75"}
AVERS_CLOCKS = {"limit": "0:10", "lead": "5", "deadline": "4", "later": "8"}
AT_ONCE = 6
"""So many submissions run at the same time; more only wait for the same cores. Other commands need no turn."""


@dataclass(frozen=True)
class Done:
    """How one command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Commands:
    """One set of Slurm's commands. `name` is `slurm` for a real Slurm, and `aver` for those held to what Aver says."""

    name: str
    environment: dict[str, str]
    user: str = ""
    turnstile: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE), compare=False)

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.user).pw_uid if self.user else os.getuid()

    @property
    def forgets(self) -> bool:
        """Whether a job is gone some time after its end; in Aver its outcome stays."""
        return self.name == "slurm"

    @property
    def clocks(self) -> dict[str, str]:
        """The shortest times with which a limit, a warning before it and a deadline can be seen."""
        return SLURMS_CLOCKS if self.name == "slurm" else AVERS_CLOCKS

    def as_user(self, words: list[str]) -> list[str]:
        """The words, with root's rights dropped where another user is named."""
        found = shutil.which(words[0], path=self.environment["PATH"])
        if not self.user:
            return [found or words[0], *words[1:]]
        return ["setpriv", "--reuid", self.user, "--regid", self.user, "--init-groups", found or words[0], *words[1:]]

    def start(self, words: list[str], folder: Path, variables: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command as the user; nobody waits for it here."""
        return subprocess.Popen(
            self.as_user(words),
            cwd=folder,
            env={**self.environment, "HOME": str(folder), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def run(self, words: list[str], folder: Path) -> Done:
        """Run a command as the user to its end. A command that hangs is killed and has the status 124."""
        return finish(self.start(words, folder), 60)

    def submit(self, words: list[str], folder: Path, variables: dict[str, str]) -> Done:
        """The same, when its turn has come."""
        with self.turnstile:
            return finish(self.start(words, folder, variables), 60)

    def run_as_operator(self, words: list[str], folder: Path) -> Done:
        """Run a command with the rights of whoever started us."""
        return finish(Commands(self.name, self.environment).start(words, folder), 60)


def finish(process: subprocess.Popen[str], seconds: float) -> Done:
    """Wait for the end and take what it printed."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Done(124, out, err)
    return Done(process.returncode, out, err)


def find_commands(against: str, user: str = "", variables: dict[str, str] | None = None) -> Commands:
    """The set that `against` names: `slurm` (those on PATH), `local` (those of `aver env`), or a folder with them.

    `variables` are set for all of them.
    Raises UsageError for a user that root can't become, UnreachableError when commands are missing or do not answer.
    """
    prefixes = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_", "SRUN_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes) or key == "SLURM_CONF"}
    environment = {**kept, "LC_ALL": "C", "TZ": kept.get("TZ", "UTC"), **(variables or {})}
    if user and os.geteuid() != 0:
        raise UsageError(f"conformance: only root can run the commands as {user}")
    if user:
        environment["USER"] = environment["LOGNAME"] = user
    match against:
        case "slurm":
            pass
        case "local":
            environment = environment_of_aver(environment)
        case folder:
            environment["PATH"] = f"{Path(folder).resolve()}{os.pathsep}{environment['PATH']}"
    missing = [program for program in PROGRAMS if not shutil.which(program, path=environment["PATH"])]
    if missing:
        raise UnreachableError(f"conformance: {against} has no {', '.join(missing)}")
    return Commands("slurm" if against == "slurm" else "aver", environment, user)


def environment_of_aver(environment: dict[str, str]) -> dict[str, str]:
    """The environment after `eval "$(aver env)"`."""
    lines = 'set -e; lines=$("$0" -m aver env); eval "$lines"; exec env -0'
    done = subprocess.run(
        ["sh", "-c", lines, sys.executable], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise UnreachableError(f"conformance: aver env: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)
