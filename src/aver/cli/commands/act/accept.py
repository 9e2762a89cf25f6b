"""`aver accept`: a person's evidence for a job of which nobody knows how it ended."""

from __future__ import annotations

import click

from aver.cli.action import act
from aver.cli.options import addresses, json_option
from aver.protocol.messages import Accept


@click.command("accept")
@addresses
@json_option
def command(ids: tuple[str, ...], as_json: bool) -> int:
    """Vouch for a job whose end nobody saw.

    For UNVERIFIED jobs: nobody saw how they ended, and you have checked their results. Your name
    and the time are kept as evidence, and jobs that were skipped because of them become pending again.

    \b
    Examples:
      aver accept 7
      aver accept '3/train*'
    """
    return act("accept", ids, as_json, Accept)
