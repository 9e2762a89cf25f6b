"""`aver shell`: a shell, or one command, with Slurm's commands on PATH."""

from __future__ import annotations

import os

import click

from aver.cli.group import Invocation
from aver.cli.session import Session
from aver.client.slurm_bin import in_front, install
from aver.client.startup_files import entered, interactive
from aver.errors import UsageError

NOT_FOUND_STATUS = 127
NOT_EXECUTABLE_STATUS = 126


@click.command("shell")
@click.pass_obj
def command(invocation: Invocation) -> int:
    """Start a shell, or a command after --, with Slurm's commands on PATH.

    \b
    Examples:
      aver shell
      aver shell -- sbatch --wait train.sh
      aver shell -- make check
      aver shell -- snakemake --executor slurm --jobs 4
    """
    session = Session()
    session.home.prepare()
    folder = os.fspath(install(session.home))
    path = in_front(folder, os.environ.get("PATH") or os.defpath)
    environment = entered(os.environ, os.fspath(session.home.path), folder, path)
    words: list[str] = list(invocation.command or ())
    if not words:
        words, environment = interactive(os.environ.get("SHELL") or "/bin/sh", environment, folder)
    try:
        os.execvpe(words[0], words, environment)
    except OSError as error:
        status = NOT_FOUND_STATUS if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE_STATUS
        session.output.note(f"can't start {words[0]}: {error.strerror}")
        return status
    except ValueError:
        raise UsageError("a command can't contain a NUL byte") from None
