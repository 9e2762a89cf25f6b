"""`aver why`: what happened, the evidence, what to do next."""

from __future__ import annotations

import click

from aver.cli.explain import explain
from aver.cli.options import json_option
from aver.cli.output.text import one_line
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.core.reasons import parse_need_reason
from aver.core.states import SETTLED, State
from aver.errors import UsageError
from aver.store.rows import JobRow, RunRow


@click.command("why", short_help="Say what happened to a job, the evidence, and what to do next.")
@click.argument("address", metavar="[ID]", required=False)
@json_option
def command(address: str | None, as_json: bool) -> None:
    """Say what happened to a job, the evidence, and what to do next.

    First one sentence, then what each source said and when, then the next commands to type.
    For a run: the same of the job that decided how the run ended. Without ID: of the newest job that
    did not complete.

    \b
    Examples:
      aver why
      aver why 7
      aver why 3/train --json
    """
    session = Session()
    session.refresh()
    if address is None:
        address = _newest(session)
    found = session.find(address)
    job = _deciding(session, found) if isinstance(found, RunRow) else session.find_job(address)
    document = explain(session, job)
    if isinstance(found, RunRow):
        session.output.note(f"run {found.id} is {found.state}; job {job.id} ({job.name}) decided it")
    answer(session.output, document, as_json)


def _newest(session: Session) -> str:
    """The newest job that is over and did not complete; skipped jobs only follow others."""
    bad = SETTLED - {State.COMPLETED, State.SKIPPED}
    jobs = session.found_reader("to explain").newest_jobs(1, bad)
    if not jobs:
        raise UsageError("no job failed; `aver why ID` explains any job, and `aver jobs` lists them")
    session.output.note(f"job {jobs[0].id} ({one_line(jobs[0].name)}) is the newest that did not complete")
    return str(jobs[0].id)


def _deciding(session: Session, run: RunRow) -> JobRow:
    """The first job that is as the run is; else the first that is not settled or did not complete."""
    reader = session.found_reader(str(run.id))
    for states in ([run.state], [state for state in State if state is not State.COMPLETED], list(State)):
        jobs = [job for job in reader.jobs(run.id, states, limit=1000) if parse_need_reason(job.reason) is None]
        if jobs:
            return min(jobs, key=lambda job: (job.ended_at is None, job.ended_at or 0.0, job.id))
    return reader.jobs(run.id, limit=1)[0]
