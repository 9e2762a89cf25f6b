"""`aver` without arguments: what runs, what failed since this was last looked at, and what to type."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from aver.cli.facts import jobs_facts
from aver.cli.output.table import show_table
from aver.cli.output.views import job_table, near_moment
from aver.cli.session import Session
from aver.model.states import SETTLED, UNSETTLED, State
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow

SHOWN = 8
LOOKED = "looked"  # an empty file in the home: its time is when the overview was last shown
BAD = SETTLED - {State.COMPLETED, State.SKIPPED, State.CANCELLED}
NEXT = """
aver run -- COMMAND      run a command here
aver submit train.sh     run a batch script in the background
aver jobs                all jobs (--failed, --running)
aver why [ID]            what happened, and what to do next
aver log ID -f           follow a job's output
aver --help              all commands"""


def show_overview(help_text: Callable[[], str]) -> None:
    """Write it; a home without jobs gets the help."""
    session = Session()
    reader = session.reader
    if reader is None:
        session.output.line(help_text())
        return
    session.refresh()
    output = session.output
    running, pending = _unsettled(reader)
    _section(session, f"{len(running)} running, {pending} waiting", running[:SHOWN])
    since = _looked(session)
    failed = reader.newest_ended_after(since, SHOWN + 1, BAD)
    when = f" since {near_moment(since)}" if since else ""
    more = "more than " if len(failed) > SHOWN else ""
    output.line("")
    _section(session, f"{more}{min(len(failed), SHOWN) or 'none'} failed{when}", failed[:SHOWN])
    output.line(NEXT)
    _look(session)


def _unsettled(reader: Reader) -> tuple[list[JobRow], int]:
    """The jobs that run, newest first, and how many wait."""
    runs = reader.unsettled_runs()
    active = UNSETTLED - {State.PENDING, State.SUBMITTED}
    running = [job for run in runs for job in reader.jobs(run, active)]
    counts = [reader.counts(run) for run in runs]
    pending = sum(one.get(State.PENDING, 0) + one.get(State.SUBMITTED, 0) for one in counts)
    return running[::-1], pending


def _section(session: Session, heading: str, jobs: list[JobRow]) -> None:
    session.output.line(heading)
    if jobs:
        show_table(session.output, job_table(jobs_facts(session, jobs), time.time()))


def _looked(session: Session) -> float:
    try:
        return os.stat(session.home.path / LOOKED).st_mtime
    except OSError:
        return 0.0


def _look(session: Session) -> None:
    try:
        (session.home.path / LOOKED).touch(mode=0o600)
    except OSError:
        pass  # a home that can't be written to is still shown
