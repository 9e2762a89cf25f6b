"""`aver pool`: amounts that jobs of all runs share, such as licences."""

from __future__ import annotations

import click

from aver.cli.options import json_option
from aver.cli.output.documents import PoolList
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.config import load_config
from aver.protocol.messages import Done, PoolSize
from aver.report.pools import pool_facts


@click.group("pool")
def command() -> None:
    """Set and list pools that all runs share, such as licences.

    A job with `pools: {licence: 1}` waits until the pool has that much left. A pool of size 0 pauses its jobs:
    running ones continue, and no other starts.

    \b
    Examples:
      aver pool set licence 2
      aver pool list
    """


@command.command("set")
@click.argument("name")
@click.argument("size", type=click.IntRange(0))
def set_size(name: str, size: int) -> None:
    """Set how much a pool has.

    It applies to all runs, and is kept when the coordinator restarts. Running jobs continue.

    \b
    Examples:
      aver pool set licence 2
      aver pool set database 0
    """
    Session().ask(PoolSize(name, size, user_name()), Done)


@command.command("unset")
@click.argument("name")
def unset(name: str) -> None:
    """Take a pool as the settings have it; without a setting it is removed.

    \b
    Examples:
      aver pool unset licence
    """
    Session().ask(PoolSize(name, None, user_name()), Done)


@command.command("list")
@json_option
def list_pools(as_json: bool) -> None:
    """List pools: size, what is in use, by which jobs, and how many jobs wait.

    \b
    Examples:
      aver pool list
      aver pool list --json
    """
    session = Session()
    session.refresh()
    answer(session.output, PoolList(pool_facts(load_config(), session.reader)), as_json)
