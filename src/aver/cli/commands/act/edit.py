"""`aver edit`: change what a job asks for while it waits."""

from __future__ import annotations

import time
from typing import Any

import click

from aver.cli.action import act
from aver.cli.options import addresses, json_option
from aver.errors import UsageError
from aver.protocol.messages import Changes, Clearable, ResultCode, Update
from aver.render.verdict import limit_words
from aver.spec.flags import Overrides, parse_overrides

WORDS = {  # the coordinator answers with Slurm's
    ResultCode.DONE: "changed",
    ResultCode.RUNNING: "it runs: only --time and --priority can be changed",
    ResultCode.SETTLED: "it is settled: nothing was changed; `aver retry` runs it again",
}


@click.command("edit")
@addresses
@click.option("--time", "-t", metavar="TIME", help="Time limit: 10 (minutes), 90s, 2h; UNLIMITED for none.")
@click.option("--mem", metavar="SIZE", help="Memory limit: 512 (MiB), 2G; 0 for none.")
@click.option("--cpus", "-c", metavar="N", help="CPUs.")
@click.option("--priority", metavar="N", help="Higher numbers start first.")
@click.option("--begin", metavar="WHEN", help="Earliest start: 16:00, now+1hour, 2030-01-20T12:00.")
@json_option
def command(ids: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Change what pending jobs ask for.

    The time limit of a running job can be changed, too. The number of a run stands for all its jobs. The flow's file
    does not change: `aver retry` keeps the new values, `aver reinit` uses those of the flow.

    \b
    Examples:
      aver edit 7 --mem 8G --time 4h
      aver edit '3/train*' --priority 10
    """
    wanted = parse_overrides(now=time.time(), **options)
    if all(text is None for text in options.values()):
        raise UsageError("edit: give --time, --mem, --cpus, --priority or --begin")
    _check_machine(wanted)
    changes = Changes(
        time_s=wanted.time_s or None,
        mem_bytes=wanted.mem_bytes,
        cpus=wanted.cpus,
        priority=wanted.priority,
        begin_at=wanted.begin_at,
    )
    clear = (Clearable.TIME_LIMIT,) if wanted.time_s == 0 else ()
    return act("edit", ids, as_json, lambda numbers, by: Update(numbers, changes, clear, by), WORDS)


def _check_machine(wanted: Overrides) -> None:
    """Refuse what this machine can never give."""
    from aver.config import load_config
    from aver.engines.local.capabilities import room_here

    room = room_here(load_config())
    if wanted.cpus is not None and wanted.cpus > room.cpus:
        raise UsageError(f"--cpus {wanted.cpus}: this machine has {room.cpus}")
    if (wanted.mem_bytes or 0) > room.mem_bytes:
        raise UsageError(f"--mem: this machine has {limit_words(room.mem_bytes)}")
