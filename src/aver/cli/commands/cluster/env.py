"""`aver env`: the line that puts Slurm's commands on PATH, for the shell to evaluate."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from aver.cli.session import Session
from aver.client.slurm_bin import COMMANDS, in_front, install, put_into, take_out_of
from aver.errors import UsageError

SHELLS = ("sh", "fish", "csh")


@click.command("env")
@click.option("--shell", "shell", metavar="NAME", help="Shell to print for: sh, fish or csh (default: from $SHELL).")
@click.option(
    "--install",
    "install_into",
    metavar="FOLDER",
    help="Install commands into FOLDER that work inside Aver's jobs and do nothing elsewhere.",
)
@click.option("--uninstall", "uninstall_from", metavar="FOLDER", help="Remove these commands from FOLDER.")
def command(shell: str | None, install_into: str | None, uninstall_from: str | None) -> None:
    """Print the line that puts Slurm's commands on PATH.

    sbatch, srun, salloc, squeue, sacct, scontrol, scancel, sinfo and more then run jobs on this
    machine. They are in front of a real Slurm's in this shell alone.

    Jobs have them on PATH already. Only scripts that start from an empty environment (env -i bash -l)
    need --install, with a folder that login files put on PATH.

    \b
    Examples:
      eval "$(aver env)"
      aver env --shell fish | source
      aver env --install ~/.local/bin
    """
    session = Session()
    if install_into is not None or uninstall_from is not None:
        _install(session, install_into, uninstall_from)
        return
    session.home.prepare()
    folder = os.fspath(install(session.home))
    home = os.fspath(session.home.path) if os.environ.get("AVER_HOME") else None
    session.output.line(line_for(_kind(shell), folder, home, os.environ.get("PATH") or os.defpath))


def _install(session: Session, into: str | None, out_of: str | None) -> None:
    if out_of is not None:
        count = take_out_of(Path(out_of))
        session.output.line(f"{count} commands removed from {out_of}" if count else f"nothing of aver's in {out_of}")
    if into is not None:
        put_into(Path(into))
        session.output.line(
            f"{len(COMMANDS)} commands in {into}: Aver's inside its jobs and aver shell, none elsewhere"
        )


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
