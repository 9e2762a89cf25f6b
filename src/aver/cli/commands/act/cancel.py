"""`aver cancel`: end jobs or runs, or send them a signal."""

from __future__ import annotations

import click

from aver.cli.action import act
from aver.cli.options import addresses, json_option
from aver.errors import UsageError
from aver.model.signals import parse_signal
from aver.protocol.messages import Cancel


@click.command("cancel")
@addresses
@click.option("--signal", "-s", "signal_name", metavar="SIG", help="Send this signal instead of cancelling.")
@click.option("--force", "-f", is_flag=True, help="Send KILL at once, without TERM; the verdict is CANCELLED.")
@click.option("--now", is_flag=True, help="Also cancel the run's finishers (`if: always`).")
@json_option
def command(ids: tuple[str, ...], signal_name: str | None, force: bool, now: bool, as_json: bool) -> int:
    """Cancel jobs or runs, or send them a signal.

    A running job gets TERM, and KILL after its kill wait. A pending job never starts. Jobs that
    need a cancelled one are skipped. Cancelling twice is harmless.

    \b
    Examples:
      aver cancel 7
      aver cancel 3 '4/train*'
      aver cancel 7 --force
      aver cancel 7 --signal USR1
    """
    if (now or force) and signal_name is not None:
        raise UsageError(f"give --{'now' if now else 'force'} or --signal, not both: --signal cancels nothing")
    try:
        number = None if signal_name is None else parse_signal(signal_name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return act("cancel", ids, as_json, lambda numbers, by: Cancel(numbers, by, signal=number, now=now, force=force))
