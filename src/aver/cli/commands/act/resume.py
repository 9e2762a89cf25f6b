"""`aver resume`: let suspended jobs go on."""

from __future__ import annotations

import click

from aver.cli.action import act
from aver.cli.options import addresses, json_option
from aver.protocol.messages import Resume


@click.command("resume")
@addresses
@json_option
def command(ids: tuple[str, ...], as_json: bool) -> int:
    """Resume suspended jobs.

    They continue where they were stopped.

    \b
    Examples:
      aver resume 7
      aver resume '3/train*'
    """
    return act("resume", ids, as_json, Resume)
