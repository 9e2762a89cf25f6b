"""`aver stop`: the coordinator leaves; jobs go on under their witnesses."""

from __future__ import annotations

import contextlib

import click

from aver.cli.commands.look.status import nobody, read_status
from aver.cli.options import json_option
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.errors import AverError, UnreachableError, UsageError
from aver.home import Home
from aver.protocol.client import Client
from aver.protocol.lock import Lock, LockBusy


@click.command("stop")
@click.argument("ids", nargs=-1, metavar="")
@json_option
def command(ids: tuple[str, ...], as_json: bool) -> None:
    """Stop the coordinator; jobs keep running.

    Running jobs continue under their witnesses, with their limits. The next command that needs a
    coordinator starts one, which finds them again.

    \b
    Example:
      aver stop
    """
    if ids:
        raise UsageError(f"stop is for the coordinator: `aver cancel {' '.join(ids)}` ends jobs")
    session = Session()
    try:
        client = Client.connect(session.home, start=False)
    except UnreachableError:
        _forget_dead(session.home)
        answer(session.output, nobody(session), as_json)
        return
    try:
        facts = read_status(session, client, "stopped")
    finally:  # also when its store is gone, and nobody can say what runs
        client.end_coordinator()
    answer(session.output, facts, as_json)


def _forget_dead(home: Home) -> None:
    """A coordinator that died was stopped now: no witness starts the next one."""
    if home.holder():
        with contextlib.suppress(AverError, LockBusy):
            Lock.acquire(home).release()
