"""`aver jobs`: the jobs of a run, or the newest of all."""

from __future__ import annotations

import time
from collections.abc import Callable
from fnmatch import fnmatchcase

import click

from aver.cli.facts import jobs_facts
from aver.cli.options import ADDRESS, SinceType, StatesType, json_option, listing_options, row_limit
from aver.cli.output.documents import JobList
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.model.record import Record
from aver.model.states import SETTLED, UNSETTLED, State
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow, RunRow

FAILED = SETTLED - {State.COMPLETED, State.SKIPPED}
RUNNING = UNSETTLED - {State.PENDING, State.SUBMITTED}
SORTS: dict[str, Callable[[JobRow], float]] = {
    "time": lambda job: -(_elapsed(job) or 0.0),
    "start": lambda job: -(job.started_at or 0.0),
    "id": lambda job: -job.id,
}


class Filter(Record):
    """Which jobs are shown; None: no matter."""

    states: frozenset[State] | None = None
    since: float | None = None
    name: str | None = None

    @property
    def chooses(self) -> bool:
        return self != Filter()

    def takes(self, job: JobRow) -> bool:
        return (
            (self.states is None or job.state in self.states)
            and (self.since is None or (job.ended_at or time.time()) >= self.since)
            and (self.name is None or fnmatchcase(job.name, self.name) or job.name.partition("[")[0] == self.name)
        )


@click.command("jobs")
@click.argument("run", required=False, type=ADDRESS)
@click.option("--failed", "-f", is_flag=True, help="Show only jobs that ended and did not complete.")
@click.option("--running", "-r", is_flag=True, help="Show only jobs that run.")
@click.option(
    "--state",
    "-s",
    "states",
    type=StatesType(),
    multiple=True,
    metavar="STATE,…",
    help="Show only jobs in these states.",
)
@click.option("--since", type=SinceType(), metavar="WHEN", help="Only jobs not ended before: 2h, yesterday, 16:00.")
@click.option("--name", metavar="GLOB", help="Show only jobs of this name, such as 'train*'.")
@click.option("--sort", type=click.Choice(tuple(SORTS)), help="Sort by time taken, start or number, largest first.")
@listing_options
@json_option
def command(
    run: str | None,
    failed: bool,
    running: bool,
    states: tuple[frozenset[State], ...],
    since: float | None,
    name: str | None,
    sort: str | None,
    limit: int | None,
    show_all: bool,
    as_json: bool,
) -> None:
    """List jobs.

    The newest jobs first, or those of a RUN (or of an address such as '3/train*') by number. Where
    not all jobs of a run are shown, failed and running ones come first. EXIT is code:signal; ? is
    unknown, - is none. A state with a * is not verified: a person accepted it, or settle.fallback
    applies. On a terminal empty columns are left out.

    \b
    Examples:
      aver jobs
      aver jobs --failed --since yesterday
      aver jobs 3 --state failed,timeout
      aver jobs '3/train*' --json
    """
    session = Session()
    session.refresh()
    chosen = frozenset().union(*states, FAILED if failed else (), RUNNING if running else ())
    wanted = Filter(chosen if states or failed or running else None, since, name)
    rows, total = _rows(session, run, wanted, sort, row_limit(limit, show_all))
    if not rows and not as_json and session.reader is not None and (wanted.chooses or run is not None):
        session.output.note("no job fits; `aver jobs` lists all")
        return
    answer(session.output, JobList(jobs_facts(session, rows), left_out=total - len(rows)), as_json)


def _rows(
    session: Session, run: str | None, wanted: Filter, sort: str | None, limit: int | None
) -> tuple[list[JobRow], int]:
    """The rows to show, and how many there are. Without a filter, nothing is read that is not shown."""
    found = None if run is None else session.find(run)
    reader = session.reader
    if reader is None:
        return [], 0
    if not wanted.chooses and sort is None and limit is not None and not isinstance(found, list):
        if found is not None:
            return _of_run(reader, found, limit), found.jobs
        return reader.newest_jobs(limit), sum(row.jobs for row in reader.runs())
    rows = found if isinstance(found, list) else reader.jobs(None if found is None else found.id, wanted.states)
    kept = [job for job in rows if wanted.takes(job)]
    if found is None:
        kept.reverse()
    if sort is not None:
        kept.sort(key=SORTS[sort])
    return kept[:limit], len(kept)


def _of_run(reader: Reader, run: RunRow, limit: int) -> list[JobRow]:
    """By number; where not all fit, failed jobs first, then those that run."""
    if run.jobs <= limit:
        return reader.jobs(run.id, limit=limit)
    rows: list[JobRow] = []
    for states in (FAILED, RUNNING, frozenset(State) - FAILED - RUNNING):
        if len(rows) < limit:
            rows += reader.jobs(run.id, states, limit=limit - len(rows))
    return rows


def _elapsed(job: JobRow) -> float | None:
    """What it took, or has taken so far."""
    if job.elapsed_s is not None or job.started_at is None or job.state.is_settled:
        return job.elapsed_s
    return time.time() - job.started_at
