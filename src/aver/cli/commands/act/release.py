"""`aver release`: let held jobs go."""

from __future__ import annotations

import click

from aver.cli.action import act
from aver.cli.options import addresses, json_option
from aver.protocol.messages import Release


@click.command("release")
@addresses
@json_option
def command(ids: tuple[str, ...], as_json: bool) -> int:
    """Release held jobs.

    A released job starts as soon as its needs and the machine allow.

    \b
    Examples:
      aver release 7
      aver release '3/train*'
    """
    return act("release", ids, as_json, Release)
