"""A scratch home for a run against the local commands, so that the caller's home and settings change no outcome.

The scratch home has 32 CPUs, so that no case waits for another, and a short kill wait. Afterwards its jobs are
cancelled, its coordinator is stopped and the folder is removed. With AVER_HOME set, that home is used as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.conformance.commands import Commands, find_commands

SETTINGS = "cpus = 32\nkill_wait = 2\n"
END_SECONDS = 15.0


@contextmanager
def open_commands(against: str, user: str, slurm_release: str = "") -> Iterator[Commands]:
    """The commands that `against` names, in a scratch home if they are Aver's. Raises as `find_commands` does.

    With `slurm_release` the commands in a scratch home are of that release (`slurm.version`).
    """
    if against != "local" or os.environ.get("AVER_HOME"):
        yield find_commands(against, user)
        return
    folder = Path(tempfile.mkdtemp(prefix="avc-", dir="/tmp"))  # short: a socket's path is
    home, settings = folder / "h", folder / "config.toml"
    settings.write_text(SETTINGS + (f'[slurm]\nversion = "{slurm_release}"\n' if slurm_release else ""))
    try:
        commands = find_commands(against, user, {"AVER_HOME": str(home), "AVER_CONFIG": str(settings)})
        if user:
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, user, user)
        yield commands
        _end_jobs(commands, folder)
    finally:
        _end_coordinator(home)
        shutil.rmtree(folder, ignore_errors=True)


def _end_jobs(commands: Commands, folder: Path) -> None:
    """Cancel the jobs that are left, and wait until the queue is empty."""
    end = time.monotonic() + END_SECONDS
    while commands.run(["squeue", "-h"], folder).out.strip() and time.monotonic() < end:
        commands.run(["scancel", "-Q", "-t", "PENDING,RUNNING"], folder)
        time.sleep(0.2)


def _end_coordinator(home: Path) -> None:
    """Stop the coordinator; kill it by its pid if it does not stop."""
    pid = _coordinator(home)
    if pid is None:
        return
    environment = {**os.environ, "AVER_HOME": str(home)}
    subprocess.run([sys.executable, "-m", "aver", "stop"], env=environment, capture_output=True, check=False)
    end = time.monotonic() + END_SECONDS
    while _coordinator(home) == pid and time.monotonic() < end:
        time.sleep(0.05)
    if _coordinator(home) == pid:
        os.kill(pid, signal.SIGKILL)


def _coordinator(home: Path) -> int | None:
    """The pid in the home's lock, if that process lives and is this home's coordinator."""
    try:
        pid = json.loads((home / "lock").read_bytes())["pid"]
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) and os.fsencode(home) in words else None
