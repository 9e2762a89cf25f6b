"""`aver jobs`: the jobs of a run, or the newest of all."""

from __future__ import annotations

import click

from aver.cli.facts import jobs_facts
from aver.cli.options import StateType, json_option, listing_options, row_limit
from aver.cli.output.documents import JobList
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.model.states import State
from aver.store.read.rows import JobRow


@click.command("jobs")
@click.argument("run", required=False)
@click.option(
    "--state", "-s", "states", type=StateType(), multiple=True, metavar="STATE", help="Show only jobs in this state."
)
@listing_options
@json_option
def command(run: str | None, states: tuple[State, ...], limit: int | None, show_all: bool, as_json: bool) -> None:
    """List jobs.

    The newest jobs, or those of a RUN (or of an address such as '3/train*'). EXIT is code:signal; ? is
    unknown, - is none. A state with a * is not verified: a person accepted it, or settle.fallback
    applies.

    \b
    Examples:
      aver jobs
      aver jobs 3 --state failed
      aver jobs '3/train*' --json
    """
    session = Session()
    session.refresh()
    rows, total = _rows(session, run, states, row_limit(limit, show_all))
    answer(session.output, JobList(jobs_facts(session, rows), left_out=total - len(rows)), as_json)


def _rows(session: Session, run: str | None, states: tuple[State, ...], limit: int | None) -> tuple[list[JobRow], int]:
    """The rows to show, and how many there are. Without a state, nothing is read that is not shown."""
    found = None if run is None else session.find(run)
    reader = session.reader
    if reader is None:
        return [], 0
    if isinstance(found, list):
        rows = [job for job in found if not states or job.state in states]
        return rows[:limit], len(rows)
    if states or limit is None:
        rows = reader.jobs(None if found is None else found.id, states or None)
        return (rows if limit is None else rows[:limit] if found else rows[-limit:]), len(rows)
    if found is not None:
        return reader.jobs(found.id, limit=limit), found.jobs
    return reader.newest_jobs(limit)[::-1], sum(row.jobs for row in reader.runs())
