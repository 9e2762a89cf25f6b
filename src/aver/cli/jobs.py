"""`aver jobs`: the jobs of a run, or the newest of all."""

from __future__ import annotations

import click

from aver.cli.facts import jobs_facts
from aver.cli.options import StateType, json_option, listing_options, row_limit
from aver.cli.output.documents import JobList
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.core.states import State
from aver.store.rows import JobRow, RunRow


@click.command("jobs", short_help="List jobs.")
@click.argument("run", required=False)
@click.option(
    "--state", "-s", "states", type=StateType(), multiple=True, metavar="STATE", help="Only jobs in this state."
)
@listing_options
@json_option
def command(run: str | None, states: tuple[State, ...], limit: int | None, show_all: bool, as_json: bool) -> None:
    """List jobs.

    The newest jobs, or those of a RUN (or of an address such as '3/train*').

    \b
    Examples:
      aver jobs
      aver jobs 3 --state failed
      aver jobs '3/train*' --json
    """
    session = Session()
    session.refresh()
    rows = _rows(session, run, states)
    shown = row_limit(limit, show_all)
    kept = rows if shown is None else rows[:shown] if run is not None else rows[-shown:]
    document = JobList(jobs_facts(session, kept), left_out=len(rows) - len(kept))
    answer(session.output, document, as_json)


def _rows(session: Session, run: str | None, states: tuple[State, ...]) -> list[JobRow]:
    if run is None:
        return [] if session.reader is None else session.reader.jobs(states=states or None)
    found = session.find(run)
    if isinstance(found, RunRow):
        assert session.reader is not None
        return session.reader.jobs(found.id, states or None)
    return [job for job in found if not states or job.state in states]
