"""`aver prune`: cut the logs of old runs; their verdicts stay."""

from __future__ import annotations

import click

from aver.cli.options import DurationType, json_option
from aver.cli.output.documents import Pruned
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.config import load_config
from aver.errors import UsageError
from aver.model.units import parse_size
from aver.protocol import messages


@click.command("prune")
@click.option(
    "--older-than", type=DurationType(), metavar="TIME", help="Cut runs that ended longer ago than this: 30d, 12h."
)
@click.option("--keep-last", type=click.IntRange(min=0), metavar="N", help="Keep the newest N runs.")
@click.option(
    "--max-size", metavar="SIZE", help="Cut the oldest runs until all logs together have at most this size: 5G."
)
@click.option("--dry-run", "-n", is_flag=True, help="Show what would be cut; change nothing.")
@json_option
def command(
    older_than: float | None, keep_last: int | None, max_size: str | None, dry_run: bool, as_json: bool
) -> None:
    """Cut the logs of old runs; their verdicts stay.

    Only settled runs, and only files that Aver named itself. Of a job that did not complete the end
    of its log stays. Each log ends with a line that says when and why it was cut. The run's
    environment, scripts and copy of stdin are removed: it can't be retried any more. With
    --keep-last alone all older runs are cut. Without options: as `[retention]` in the settings says.

    \b
    Examples:
      aver prune --older-than 30d --keep-last 10 --dry-run
      aver prune --max-size 5G
    """
    session = Session()
    if older_than is None and keep_last is None and max_size is None and load_config().retention is None:
        raise UsageError("prune: give --older-than, --keep-last or --max-size")
    try:
        max_bytes = None if max_size is None else parse_size(max_size)
    except ValueError as error:
        raise UsageError(f"--max-size: {error}") from None
    if older_than is not None and older_than <= 0:
        raise UsageError("--older-than must be more than 0, such as 30d, 12h or 90s")
    reply = session.ask(messages.Prune(older_than, keep_last, max_bytes, dry_run, user_name()), messages.Pruned)
    freed = sum(run.size_bytes for run in reply.runs)
    answer(session.output, Pruned(dry_run, reply.runs, freed, reply.left_bytes), as_json)
