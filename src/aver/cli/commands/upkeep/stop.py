"""`aver stop`: the coordinator leaves; jobs go on under their witnesses."""

from __future__ import annotations

import click

from aver.cli.commands.look.status import nobody, read_status
from aver.cli.options import json_option
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.errors import UnreachableError
from aver.protocol.client import Client
from aver.protocol.messages import Done, Stop


@click.command("stop")
@json_option
def command(as_json: bool) -> None:
    """Stop the coordinator; jobs keep running.

    Running jobs continue under their witnesses, with their limits. The next command that needs a
    coordinator starts one, which finds them again.

    \b
    Example:
      aver stop
    """
    session = Session()
    try:
        client = Client.connect(session.home, start=False)
    except UnreachableError:
        answer(session.output, nobody(session), as_json)
        return
    facts = read_status(session, client, "stopped")
    client.ask(Stop(), Done)
    client.close()
    answer(session.output, facts, as_json)
