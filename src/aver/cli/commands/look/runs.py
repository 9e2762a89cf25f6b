"""`aver runs`: the newest runs."""

from __future__ import annotations

import click

from aver.cli.options import StateType, json_option, listing_options, row_limit
from aver.cli.output.documents import RunList
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.client.documents import run_facts
from aver.model.states import State


@click.command("runs")
@click.option(
    "--state", "-s", "states", type=StateType(), multiple=True, metavar="STATE", help="Show only runs in this state."
)
@listing_options
@json_option
def command(states: tuple[State, ...], limit: int | None, show_all: bool, as_json: bool) -> None:
    """List runs.

    The newest first. A single job is a run of one job with the same number.

    \b
    Examples:
      aver runs
      aver runs --state running --json
    """
    session = Session()
    session.refresh()
    reader = session.reader
    if reader is None:
        answer(session.output, RunList((), 0), as_json)
        return
    shown = row_limit(limit, show_all)
    rows = reader.runs(None if shown is None else shown + 1, states or None)
    kept = rows[:shown]
    session.mask(run.id for run in kept)
    left_out = reader.count_runs(states or None) - len(kept) if len(rows) > len(kept) else 0
    answer(session.output, RunList(tuple(run_facts(run, reader.counts(run.id)) for run in kept), left_out), as_json)
