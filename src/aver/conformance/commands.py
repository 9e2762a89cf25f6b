"""A set of Slurm's commands: where it is, who runs it, which release it is, and what its machine lacks.

Every call has a timeout, and the caller's environment without the variables that change what the commands do.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from aver.errors import UnreachableError, UsageError

PROGRAMS = ("sbatch", "srun", "squeue", "sacct", "scontrol", "scancel")
SLURM_TIMES = {"limit": "1", "lead": "20", "deadline": "65", "later": "75"}
"""`lead` is less than the limit minus 30 s: slurmctld warns up to 30 s early, and a warning that comes while the script
is started may be delivered a minute late (`_wait_for_job_running` in slurmstepd)."""
AVER_TIMES = {"limit": "0:10", "lead": "5", "deadline": "4", "later": "8"}
LAB_PARTITIONS = frozenset({"low", "high", "requeue", "fragile", "narrow"})
CONCURRENT_SUBMISSIONS = 6
"""More submissions at the same time only wait for the same cores. Other commands are not limited."""


@dataclass(frozen=True)
class Done:
    """How one command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Commands:
    """One set of Slurm's commands. `name` is `slurm` for a real Slurm, `aver` for a set that is compared with Aver's
    intended values.
    """

    name: str
    environment: dict[str, str]
    user: str = ""
    submissions: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(CONCURRENT_SUBMISSIONS), compare=False
    )

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.user).pw_uid if self.user else os.getuid()

    @property
    def forgets(self) -> bool:
        """Whether scontrol drops a job some time after its end; Aver keeps every outcome."""
        return self.name == "slurm"

    @property
    def times(self) -> dict[str, str]:
        """The shortest time limit, warning and deadline that these commands can show."""
        return SLURM_TIMES if self.name == "slurm" else AVER_TIMES

    def as_user(self, words: list[str]) -> list[str]:
        """The command line that runs `words` as the user; root drops its rights."""
        found = shutil.which(words[0], path=self.environment["PATH"])
        if not self.user:
            return [found or words[0], *words[1:]]
        return ["setpriv", "--reuid", self.user, "--regid", self.user, "--init-groups", found or words[0], *words[1:]]

    def start(self, words: list[str], folder: Path, variables: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command as the user and return at once."""
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
        """Run a submission as `run` does, at most CONCURRENT_SUBMISSIONS at a time."""
        with self.submissions:
            return finish(self.start(words, folder, variables), 60)

    def run_as_operator(self, words: list[str], folder: Path) -> Done:
        """Run a command with the rights of the calling process."""
        return finish(Commands(self.name, self.environment).start(words, folder), 60)

    def version(self) -> str | None:
        """The version that scontrol prints, such as `22.05.8`; None if it prints none."""
        found = re.search(r"^slurm\S* (\d+\.\d+\S*)", self.run(["scontrol", "--version"], Path("/")).out)
        return found[1] if found else None

    def missing_needs(self) -> dict[str, str]:
        """The needs of cases that this machine, or this Slurm, does not meet, each with the reason."""
        return _slurm_lacks(self) if self.name == "slurm" else _machine_lacks(self)


def finish(process: subprocess.Popen[str], seconds: float) -> Done:
    """Wait for the end of a process and collect its output."""
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
            environment = _environment_of_aver(environment)
        case folder:
            environment["PATH"] = f"{Path(folder).resolve()}{os.pathsep}{environment['PATH']}"
    missing = [program for program in PROGRAMS if not shutil.which(program, path=environment["PATH"])]
    if missing:
        raise UnreachableError(f"conformance: {against} has no {', '.join(missing)}")
    return Commands("slurm" if against == "slurm" else "aver", environment, user)


def _environment_of_aver(environment: dict[str, str]) -> dict[str, str]:
    """The environment after `eval "$(aver env)"`."""
    lines = 'set -e; lines=$("$0" -m aver env); eval "$lines"; exec env -0'
    done = subprocess.run(
        ["sh", "-c", lines, sys.executable], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise UnreachableError(f"conformance: aver env: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)


def _machine_lacks(commands: Commands) -> dict[str, str]:
    """What Aver's commands on one machine can't show."""
    lacks = {
        "operator": "one machine has no operator that takes nodes away",
        "nodes": "one machine is one node",
        "partitions": "one machine has no partitions that preempt each other",
    }
    if not _kernel_limits_memory(commands):
        lacks["memory"] = "no cgroup is writable: nobody can tell that memory ran out"
    return lacks


def _slurm_lacks(commands: Commands) -> dict[str, str]:
    """What this Slurm can't show."""
    lacks: dict[str, str] = {}
    settings = commands.run(["scontrol", "show", "config"], Path("/")).out
    if "cgroup" not in "".join(re.findall(r"^TaskPlugin\s*=\s*(.*)$", settings, re.MULTILINE)):
        lacks["memory"] = "this Slurm does not enforce memory limits: cgroups are not writable"
    partitions = commands.run(["sinfo", "-h", "-a", "-o", "%R"], Path("/")).out.split()
    if not LAB_PARTITIONS.issubset(partitions):
        lacks["partitions"] = "this Slurm does not have the lab's partitions"
        lacks["operator"] = "this Slurm has no node to spare"
    if os.geteuid() != 0:
        lacks["operator"] = "only root can act as the operator"
    return lacks


def _kernel_limits_memory(commands: Commands) -> bool:
    """Whether `aver doctor` finds a cgroup in which the kernel enforces memory limits."""
    done = commands.run([sys.executable, "-m", "aver", "doctor", "--json"], Path.cwd())
    try:
        checks = json.loads(done.out)["checks"]
    except (ValueError, KeyError):
        raise UnreachableError(
            f"conformance: aver doctor: {(done.err.strip().splitlines() or ['failed'])[-1]}"
        ) from None
    return any(one["name"] == "memory limit" and one["status"] == "ok" for one in checks)
