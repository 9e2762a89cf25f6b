"""`aver jobs`: the jobs of a run, or the newest of all."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from aver.cli.facts import jobs_facts
from aver.cli.options import ADDRESS, SinceType, StatesType, json_option, listing_options, row_limit
from aver.cli.output.documents import JobList
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.client.documents import JobFacts
from aver.errors import UsageError
from aver.model.codec import encode
from aver.model.record import replace
from aver.model.states import SETTLED, UNSETTLED, State
from aver.printable import one_line
from aver.store.read.job_list import BY_NUMBER, SORTS, Wanted, find_jobs
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow

FAILED = SETTLED - {State.COMPLETED, State.SKIPPED}
RUNNING = UNSETTLED - {State.PENDING, State.SUBMITTED}


@click.command("jobs")
@click.argument("run", required=False, type=ADDRESS)
@click.option("--failed", "-f", is_flag=True, help="Show only jobs that ended and did not complete.")
@click.option("--running", "-r", is_flag=True, help="Show only running jobs.")
@click.option(
    "--state",
    "-s",
    "states",
    type=StatesType(),
    multiple=True,
    metavar="STATE,…",
    help="Show only jobs in these states.",
)
@click.option(
    "--since", type=SinceType(), metavar="WHEN", help="Leave out jobs that ended before: 2h, yesterday, 16:00."
)
@click.option("--name", metavar="GLOB", help="Show only jobs of this name, such as 'train*'.")
@click.option("--sort", type=click.Choice(SORTS), help="Sort by time taken, memory, start or number, largest first.")
@click.option("--format", "keys", metavar="KEY,…", help="Print these keys of the JSON, with tabs between them.")
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
    keys: str | None,
    limit: int | None,
    show_all: bool,
    as_json: bool,
) -> None:
    """List jobs.

    The newest jobs first, or those of a RUN (or of an address such as '3/train*') by number. Where
    not all jobs of a run are shown, failed and running ones come first. EXIT is code:signal; ? is
    unknown, - is none. A state with a * is not verified: a person accepted it, or settle.fallback
    applies. On a terminal empty columns are left out, and REASON has the exit in words.

    \b
    Examples:
      aver jobs
      aver jobs --failed --since yesterday
      aver jobs 3 --state failed,timeout
      aver jobs '3/train*' --json
      aver jobs --running --format id,name,elapsed_s
    """
    wanted_keys = _parse_keys(keys, as_json)
    session = Session()
    session.refresh()
    chosen = frozenset().union(*states, FAILED if failed else (), RUNNING if running else ())
    wanted = Wanted(
        None, chosen if states or failed or running else None, since, name, sort or ("id" if run is None else BY_NUMBER)
    )
    rows, total = _rows(session, run, wanted, row_limit(limit, show_all))
    is_chosen = run is not None or replace(wanted, sort="id") != Wanted()
    if not rows and not as_json and session.reader is not None and is_chosen:
        session.output.note("no job matches; `aver jobs` lists all")
        return
    if wanted_keys:
        for facts in map(encode, jobs_facts(session, rows)):
            session.output.line("\t".join(_text(facts[key]) for key in wanted_keys))
        return
    answer(session.output, JobList(jobs_facts(session, rows), left_out=total - len(rows)), as_json)


def _parse_keys(text: str | None, as_json: bool) -> tuple[str, ...]:
    if text is None:
        return ()
    if as_json:
        raise UsageError("give --format or --json, not both")
    found = tuple(key.strip() for key in text.split(","))
    for key in found:
        if key not in JobFacts.__struct_fields__:
            raise UsageError(f"--format: no key {key!r}; the keys are {', '.join(JobFacts.__struct_fields__)}")
    return found


def _text(value: Any) -> str:
    """As in JSON; an exit as code:signal, and nothing where there is none."""
    match value:
        case None:
            return ""
        case {"text": text}:
            return str(text)
        case str():
            return one_line(value)
        case _:
            return json.dumps(value)


def _rows(session: Session, address: str | None, wanted: Wanted, limit: int | None) -> tuple[list[JobRow], int]:
    """The rows to show, and how many there are. Nothing is read whole that is not shown."""
    found = None if address is None else session.find(address)
    reader = session.reader
    if reader is None:
        return [], 0
    now = time.time()
    if isinstance(found, list):
        known = {job.id: job for job in found}
        numbers, _ = find_jobs(reader, replace(wanted, run=found[0].run), None, now)
        kept = [number for number in numbers if number in known]
        return [known[number] for number in kept[:limit]], len(kept)
    if found is None and wanted == Wanted() and limit is not None:
        return reader.newest_jobs(limit), reader.count_jobs()
    wanted = replace(wanted, run=None if found is None else found.id)
    numbers, total = find_jobs(reader, wanted, limit, now)
    if limit is not None and total > limit and wanted == Wanted(run=wanted.run, sort=BY_NUMBER):
        numbers = _worst_first(reader, wanted, limit, now)
    return reader.listed(numbers), total


def _worst_first(reader: Reader, wanted: Wanted, limit: int, now: float) -> list[int]:
    """By number; failed jobs first, then those that run."""
    numbers: list[int] = []
    for states in (FAILED, RUNNING, frozenset(State) - FAILED - RUNNING):
        if len(numbers) < limit:
            numbers += find_jobs(reader, replace(wanted, states=states), limit - len(numbers), now)[0]
    return numbers
