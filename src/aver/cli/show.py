"""`aver show`: all facts of a job, its attempts included, or of a run."""

from __future__ import annotations

import click

from aver.cli.explain import explain
from aver.cli.facts import attempt_facts, command_of, job_facts, jobs_facts, run_facts
from aver.cli.options import LISTED, json_option
from aver.cli.output.documents import JobShown, RunShown
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.errors import UsageError
from aver.store.rows import JobRow, RunRow


@click.command("show", short_help="Show all facts of a job or a run.")
@click.argument("address", metavar="ID")
@json_option
def command(address: str, as_json: bool) -> None:
    """Show all facts of a job or a run.

    \b
    Examples:
      aver show 7
      aver show '3/train[seed=2]' --json
    """
    session = Session()
    session.refresh()
    found = session.find(address)
    if isinstance(found, RunRow):
        document: JobShown | RunShown = _run(session, found)
    elif len(found) == 1:
        document = _job(session, found[0])
    else:
        raise UsageError(f"{address} names {len(found)} jobs; `aver jobs '{address}'` lists them")
    answer(session.output, document, as_json)


def _job(session: Session, job: JobRow) -> JobShown:
    reader = session.found_reader(str(job.id))
    session.mask([job.run])
    submission = session.submission(job.run)
    origin = submission.origin
    attempts = tuple(attempt_facts(session, job, attempt) for attempt in reader.attempts(job.id))
    return JobShown(
        job=job_facts(job, submission.flow.is_single),
        sentence=explain(session, job).sentence,
        command=command_of(session, job),
        folder=origin.folder,
        user=origin.user,
        host=origin.host,
        typed=origin.command,
        secrets=origin.secrets,
        attempts=attempts,
    )


def _run(session: Session, run: RunRow) -> RunShown:
    reader = session.found_reader(str(run.id))
    session.mask([run.id])
    origin = session.submission(run.id).origin
    jobs = reader.jobs(run.id, limit=LISTED)
    return RunShown(
        run=run_facts(reader, run),
        user=origin.user,
        host=origin.host,
        typed=origin.command,
        jobs=jobs_facts(session, jobs),
        left_out=run.jobs - len(jobs),
    )
