"""`aver` without arguments: what runs, what failed since this was last looked at, and what to type."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from aver.cli.facts import jobs_facts
from aver.cli.output.views import near_moment, show_job_table
from aver.cli.session import Session
from aver.model.states import SETTLED, UNSETTLED, State
from aver.store.read.job_list import Wanted, find_jobs
from aver.store.read.rows import JobRow

SHOWN = 8
LOOKED = "looked"  # an empty file in the home: its time is when the overview was last shown
BAD = SETTLED - {State.COMPLETED, State.SKIPPED, State.CANCELLED}
NEXT = """
aver run -- COMMAND      run a command here
aver submit train.sh     run a batch script in the background
aver jobs                all jobs (--failed, --running)
aver top                 all jobs, live
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
    counts = reader.unsettled_counts()
    pending = counts.get(State.PENDING, 0) + counts.get(State.SUBMITTED, 0)
    running, count = find_jobs(reader, Wanted(states=UNSETTLED - {State.PENDING, State.SUBMITTED}), SHOWN, time.time())
    _section(session, f"{count} running, {pending} waiting", reader.listed(running))
    since = _looked(session)
    failed, count = find_jobs(reader, Wanted(states=BAD, since=since), SHOWN, time.time())
    when = f" since {near_moment(since)}" if since else ""
    output.line("")
    _section(session, f"{count or 'none'} failed{when}", reader.listed(failed))
    output.line(NEXT)
    _look(session)


def _section(session: Session, heading: str, jobs: list[JobRow]) -> None:
    session.output.line(heading)
    if jobs:
        show_job_table(session.output, jobs_facts(session, jobs))


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
