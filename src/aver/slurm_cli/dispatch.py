"""What `aver env --install FOLDER` puts there: a command of Slurm's that leads to the right one.

Inside a job of this machine, or `aver shell`, it becomes Aver's, whose home is found in the environment or, where a
script has emptied that (`env -i bash -l`), in that of the processes above. Anywhere else it becomes the next command of
its name on PATH, as if it were not there. What the environment says decides what a command does, as in Slurm: with an
emptied one `srun` is outside of any job, and is a job of its own.
"""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.output import say

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_FOUND_STATUS = 127


def main(name: str, arguments: list[str]) -> int:
    """Does not return where there is such a command."""
    home = _home_above(os.getpid())
    if home is not None:
        os.environ["AVER_HOME"] = home
        place: str | None = os.path.join(home, "bin", name)
    else:
        place = _next(name)
    try:
        if place is not None:
            os.execv(place, [place, *arguments])
    except OSError as error:
        say(f"{name}: can't start {place}: {error.strerror}")
        return NOT_FOUND_STATUS - 1
    say(f"{name}: not inside a job of aver or `aver shell`, and there is no other {name} on PATH")
    return NOT_FOUND_STATUS


def home_of(environment: Mapping[str, str]) -> str | None:
    """The home whose commands a process with this environment is to have; None: it is not inside."""
    is_on_cluster = "AVER_RECORDS" in environment  # the commands of that job are the cluster's
    is_inside = "AVER_KEY" in environment or "AVER_SHELL" in environment
    return environment.get("AVER_HOME") if is_inside and not is_on_cluster else None


def _home_above(pid: int) -> str | None:
    """That of the process, or of the nearest one above it that says so."""
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                text = os.fsdecode(file.read())
            with open(f"/proc/{pid}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None  # another user's: we are inside of nothing of ours
        home = home_of(dict(pair.partition("=")[::2] for pair in text.split("\0")))
        if home is not None:
            return home
        pid = parent
    return None


def _next(name: str) -> str | None:
    """The first command of this name on PATH that is none of these."""
    from aver.client.slurm_bin import is_ours

    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or ".", name)
        if os.access(path, os.X_OK) and os.path.isfile(path) and not is_ours(path):
            return path
    return None
