"""`aver suspend`: stop running jobs for a while."""

from __future__ import annotations

import click

from aver.cli.action import act
from aver.cli.options import addresses, json_option
from aver.protocol.messages import Suspend


@click.command("suspend")
@addresses
@json_option
def command(ids: tuple[str, ...], as_json: bool) -> int:
    """Suspend running jobs.

    A suspended job keeps its place and its memory, and its time limit is paused.

    \b
    Examples:
      aver suspend 7
      aver suspend '3/train*'
    """
    return act("suspend", ids, as_json, Suspend)
