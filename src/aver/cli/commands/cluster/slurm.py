"""`aver slurm sacct`: what the cluster's accounting has of a run, row by row, and which job each row is about."""

from __future__ import annotations

import os
import time

import click

from aver.cli.options import ADDRESS, json_option
from aver.cli.output.documents import AccountFacts, AccountList
from aver.cli.output.views import answer
from aver.cli.selection import whole_run
from aver.cli.session import Session
from aver.config import Config, load_config
from aver.errors import UnreachableError, UsageError
from aver.home import Home
from aver.model.events import Observed
from aver.store.read.reader import Reader

MARGIN_S = 3600.0
Place = tuple[int, int | None]  # a job of the cluster, and its index in an array


@click.group("slurm")
def command() -> None:
    """Show the cluster's own records of a run: `aver slurm sacct RUN`.

    \b
    Examples:
      aver slurm sacct 3
    """


@command.command("sacct")
@click.argument("run", metavar="RUN", type=ADDRESS)
@json_option
def sacct(run: str, as_json: bool) -> None:
    """Show a run's records in accounting: its jobs on Slurm, its allocations, their steps, states and MaxRSS.

    States and exit codes are printed as the cluster has them. Before Slurm 25.11, it subtracts 128 from exit
    codes of 128 and above, and a CANCELLED step may have ended by its own signal: `aver results` has the verdicts.

    \b
    Examples:
      aver slurm sacct 3
      aver slurm sacct 3 --json
    """
    session = Session()
    session.refresh()
    row = whole_run(session, run, "slurm sacct")
    with_ids = session.found_reader(run)
    jobs, allocations = _places(with_ids, row.id)
    if not jobs and not allocations:
        raise UsageError(f"no number at Slurm is known for run {row.id}")
    submission = with_ids.submission(row.id)
    host = "" if submission is None else submission.host
    found = _ask(session.home, load_config(), host, jobs, allocations, row.submitted_at)
    answer(session.output, AccountList(row.id, found), as_json)


def _places(reader: Reader, run: int) -> tuple[dict[Place, tuple[int, int]], set[int]]:
    """The cluster's ids of the run's attempts, whose they are, and its allocations."""
    jobs: dict[Place, tuple[int, int]] = {}
    allocations: set[int] = set()
    for stored in reader.events(run=run):
        event = stored.event
        if not isinstance(event, Observed):
            continue
        if event.scheduler_id is not None:
            number, _, index = event.scheduler_id.partition("_")
            jobs[int(number), int(index) if index else None] = (event.job, event.attempt)
        if event.allocation is not None:
            allocations.add(event.allocation)
    return jobs, allocations


def _ask(
    home: Home, config: Config, host: str, jobs: dict[Place, tuple[int, int]], allocations: set[int], since: float,
) -> tuple[AccountFacts, ...]:  # fmt: skip
    from aver.engines.slurm.allocation.steps import which_step
    from aver.engines.slurm.cluster import commands_of  # few commands need these
    from aver.engines.slurm.commands.questions import Questions
    from aver.engines.slurm.commands.rows import Accounts
    from aver.engines.slurm.remote.cluster import commands_on, ssh_to

    commands = commands_of(home, config)
    if host:
        commands = commands_on(config, ssh_to(home, config, host, os.environ.get("SSH_AUTH_SOCK")))
    ids = sorted({number for number, _ in jobs} | allocations)
    since = min(since, time.time()) - MARGIN_S
    reply = Questions(commands, config.slurm.timeout_s).accounting(ids, (), since)
    if not isinstance(reply, Accounts):
        raise UnreachableError(f"can't run sacct: {reply.text}")
    found = []
    for row in reply.rows:
        whose = jobs.get((row.job, row.index))
        step = which_step(row.name) if row.job in allocations else None
        if step is not None:
            whose = step
        elif whose is None and row.job not in allocations:
            continue
        index = "" if row.index is None else f"_{row.index}"
        number = f"{row.job}{index}" + (f".{row.step}" if row.step else "")
        job, attempt = whose or (None, None)
        found.append(
            AccountFacts(
                number, row.name, job, attempt, row.word, row.exit, row.started_at, row.ended_at, row.elapsed_s,
                row.maxrss_bytes, row.nodes,
            )
        )  # fmt: skip
    return tuple(found)
