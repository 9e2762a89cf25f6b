"""`aver show`: all facts of a job, with its attempts and steps, of one step, or of a run."""

from __future__ import annotations

import click

from aver.cli.address import parse_step
from aver.cli.explanation import events_of, explain, last_record
from aver.cli.facts import attempt_facts, command_of, jobs_facts
from aver.cli.options import LISTED, json_option
from aver.cli.output.documents import Document, JobShown, RunShown, StepShown
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.cli.steps import steps_facts
from aver.client.documents import run_facts
from aver.errors import UsageError
from aver.store.read.rows import JobRow, RunRow


@click.command("show")
@click.argument("address", metavar="ID")
@json_option
def command(address: str, as_json: bool) -> None:
    """Show everything known about a job, a step or a run.

    A step is one `srun` of a job's script: 7.0 is the first of job 7. Its tasks are shown with how
    each of them ended.

    \b
    Examples:
      aver show 7
      aver show 7.0
      aver show '3/train[seed=2]' --json
    """
    session = Session()
    session.refresh()
    answer(session.output, _document(session, address), as_json)


def _document(session: Session, address: str) -> Document:
    step = parse_step(address)
    if step is not None:
        return _step(session, session.find_job(str(step.job)), step.step)
    found = session.find(address)
    if isinstance(found, RunRow):
        return _run(session, found)
    if len(found) == 1:
        return _job(session, found[0])
    raise UsageError(f"{address} names {len(found)} jobs; `aver jobs '{address}'` lists them")


def _step(session: Session, job: JobRow, number: int) -> StepShown:
    found = steps_facts(session, job, number)
    if not found:
        raise UsageError(f"job {job.id} has no step {number}; `aver show {job.id}` lists its steps")
    return StepShown(jobs_facts(session, [job])[0], found[0])


def _job(session: Session, job: JobRow) -> JobShown:
    reader = session.found_reader(str(job.id))
    session.mask([job.run])
    submission = session.submission(job.run)
    origin = submission.origin
    happened = events_of(session, job)
    attempts = tuple(
        attempt_facts(session, job, attempt, last_record(happened, attempt.attempt))
        for attempt in reader.attempts(job.id)
    )
    return JobShown(
        job=jobs_facts(session, [job])[0],
        sentence=explain(session, job).sentence,
        command=command_of(session, job),
        folder=origin.folder,
        user=origin.user,
        host=origin.host,
        typed=origin.command,
        secrets=origin.secrets,
        attempts=attempts,
        steps=steps_facts(session, job),
    )


def _run(session: Session, run: RunRow) -> RunShown:
    reader = session.found_reader(str(run.id))
    session.mask([run.id])
    origin = session.submission(run.id).origin
    jobs = reader.jobs(run.id, limit=LISTED)
    return RunShown(
        run=run_facts(run, reader.counts(run.id)),
        user=origin.user,
        host=origin.host,
        typed=origin.command,
        jobs=jobs_facts(session, jobs),
        left_out=run.jobs - len(jobs),
    )
