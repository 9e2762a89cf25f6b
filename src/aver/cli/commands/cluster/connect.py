"""`aver connect`: open the connection to a cluster's host, where somebody can answer what it asks."""

from __future__ import annotations

import os
import subprocess

import click

from aver.cli.session import Session
from aver.config import load_config
from aver.engines.slurm.commands.call import Trouble
from aver.engines.slurm.remote.cluster import ssh_to
from aver.errors import AverError, UnreachableError, UsageError
from aver.model.host_name import is_host

TIMEOUT_S = 60.0


@click.command("connect")
@click.argument("host", required=False)
@click.option("--close", is_flag=True, help="Close the connection.")
def command(host: str | None, close: bool) -> None:
    """Open the ssh connection to a cluster, and answer its password prompt.

    For hosts that ask for a password or a code. The coordinator can't answer prompts, so it uses this
    connection, which closes 15 minutes after its last use. HOST
    defaults to slurm.host of the settings.

    \b
    Examples:
      aver connect me@login.example.org
      aver connect --close me@login.example.org
    """
    session = Session()
    config = load_config()
    name = host or config.slurm.host
    if not name:
        raise UsageError("no host given: use  aver connect me@login , or set slurm.host in the settings")
    if not is_host(name):
        raise UsageError(f"{name!r} is not the name of a host, such as me@login")
    ssh = ssh_to(session.home, config, name)
    if close:
        _call([*ssh.command(), "-O", "exit", "--", name], ssh.environment())
        session.output.note(f"the connection to {name} is closed")
        return
    _call([*ssh.command(asks=True), "--", name, "true"], ssh.environment())
    found = ssh.run_text("type -P sbatch", TIMEOUT_S)
    if isinstance(found, Trouble):
        raise UnreachableError(f"the connection can't be shared: {found.text}; give {name} a key or a ControlPath")
    if found.status != 0:
        raise AverError(f"connected to {name}, but a login shell of bash finds no sbatch there")
    session.output.note(f"connected to {name}; sbatch is {found.out.strip()}")


def _call(words: list[str], environment: dict[str, str]) -> None:
    """On the user's terminal."""

    try:
        done = subprocess.run(words, env={**os.environ, **environment}, check=False)
    except OSError as error:
        raise UnreachableError(f"{words[0]} can't be started: {error.strerror}") from None
    if done.returncode != 0:
        raise UnreachableError(f"ssh ended with exit status {done.returncode}")
