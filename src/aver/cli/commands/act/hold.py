"""`aver hold`: keep pending jobs from starting."""

from __future__ import annotations

import click

from aver.cli.action import act
from aver.cli.options import addresses, json_option
from aver.protocol.messages import Hold


@click.command("hold")
@addresses
@json_option
def command(ids: tuple[str, ...], as_json: bool) -> int:
    """Hold pending jobs.

    A held job is PENDING (JobHeldUser) until `aver release`. Running jobs are not touched.

    \b
    Examples:
      aver hold 7
      aver hold '3/train*'
    """
    return act("hold", ids, as_json, Hold)
