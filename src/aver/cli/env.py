"""`aver env`: the line that puts Slurm's commands on PATH, for the shell to evaluate."""

from __future__ import annotations

import os
import shlex

import click

from aver.cli.session import Session
from aver.coordinator.commands import in_front, install
from aver.errors import UsageError

SHELLS = ("sh", "fish", "csh")


@click.command("env", short_help="Print the line that puts Slurm's commands on PATH.")
@click.option("--shell", "shell", metavar="NAME", help="sh, fish or csh (as $SHELL without this).")
def command(shell: str | None) -> None:
    """Print the line that puts Slurm's commands on PATH.

    sbatch, srun, salloc, squeue, sacct, scontrol, scancel, sinfo and more then run jobs on this machine. They are in
    front of a real Slurm's in this shell alone.

    \b
    Examples:
      eval "$(aver env)"
      aver env --shell fish | source
    """
    session = Session()
    session.home.prepare()
    folder = os.fspath(install(session.home))
    home = os.fspath(session.home.path) if os.environ.get("AVER_HOME") else None
    session.output.line(line_for(_kind(shell), folder, home, os.environ.get("PATH") or os.defpath))


def line_for(kind: str, folder: str, home: str | None, path: str) -> str:
    """The line in the words of this kind of shell; `home` is named if it is not the usual one."""
    folders = in_front(folder, path)
    named = {"PATH": folders} if home is None else {"PATH": folders, "AVER_HOME": home}
    match kind:
        case "fish":
            parts = " ".join(shlex.quote(one) for one in folders.split(os.pathsep))
            words = [f"set -gx {name} {parts if name == 'PATH' else shlex.quote(text)}" for name, text in named.items()]
        case "csh":
            words = [f"setenv {name} {shlex.quote(text)}" for name, text in named.items()]
        case _:
            words = [f"export {name}={shlex.quote(text)}" for name, text in named.items()]
    return "; ".join(words) + ";"


def _kind(shell: str | None) -> str:
    if shell is not None and shell not in SHELLS:
        raise UsageError(f"--shell: {shell!r} is not a kind of shell: give {', '.join(SHELLS)}")
    name = shell or os.path.basename(os.environ.get("SHELL", "sh"))
    return "csh" if name in ("csh", "tcsh") else "fish" if name == "fish" else "sh"
