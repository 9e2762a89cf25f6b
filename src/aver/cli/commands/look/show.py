"""`aver show`: all facts of a job, with its attempts and steps, of one step, or of a run."""

from __future__ import annotations

import re

import click

from aver.cli.address import parse_step
from aver.cli.explanation import events_of, explain
from aver.cli.facts import attempt_facts, command_of, edited_spec, jobs_facts
from aver.cli.options import ADDRESS, LISTED, json_option
from aver.cli.output.documents import AskedFacts, AttemptFacts, Document, JobShown, RunShown, StepShown
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.cli.steps import steps_facts
from aver.client.documents import run_facts
from aver.client.job_files import read_env
from aver.client.use.series import AttemptUse, read_use
from aver.errors import UsageError
from aver.model.states import State
from aver.printable import one_line
from aver.render.timeline import last_record
from aver.store.read.rows import JobRow, RunRow

FOUND_BY = frozenset(
    "PATH VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH PYTHONHOME LD_LIBRARY_PATH LOADEDMODULES".split()
)
MOST_SERIES = 5  # attempts whose memory and CPUs over time are shown
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE", re.IGNORECASE)


@click.command("show")
@click.argument("address", metavar="ID", type=ADDRESS)
@click.option("--env", "env", is_flag=True, help="Show the environment that its jobs inherit, with secrets masked.")
@json_option
def command(address: str, env: bool, as_json: bool) -> None:
    """Show everything known about a job, a step or a run.

    A step is one `srun` of a job's script: 7.0 is the first of job 7. Its tasks are shown with how
    each of them ended.

    \b
    Examples:
      aver show 7
      aver show 7.0
      aver show 7 --env
      aver show '3/train[seed=2]' --json
    """
    if env and as_json:
        raise UsageError("give --env or --json, not both")
    session = Session()
    session.refresh()
    if env:
        _show_environment(session, address)
        return
    answer(session.output, _document(session, address), as_json)


def _show_environment(session: Session, address: str) -> None:
    found = session.find(address)
    run = found.id if isinstance(found, RunRow) else found[0].run
    session.mask([run])
    for name, value in environment(session, run, None if isinstance(found, RunRow) else found[0]):
        session.output.line(f"{name}={one_line(value)}")


def environment(session: Session, run: int, job: JobRow | None) -> list[tuple[str, str]]:
    """What Python and the like is found by comes first; then all the rest by name. Secrets by name are masked."""
    known = read_env(session.home, run)
    if job is not None:
        known |= dict.fromkeys((name for name, _ in session.spec(job).env), "(set by the flow)")
    names = sorted(known, key=lambda name: (name not in FOUND_BY, name))
    return [(name, "***" if SECRET_NAME.search(name) else known[name]) for name in names]


def _document(session: Session, address: str) -> Document:
    step = parse_step(session.numbered(address))
    if step is not None:
        return _step(session, session.find_job(str(step.job)), step.step)
    found = session.find(address)
    if isinstance(found, RunRow):
        return _run(session, found)
    if len(found) == 1:
        return job_shown(session, found[0])
    raise UsageError(f"{address} names {len(found)} jobs; `aver jobs '{address}'` lists them")


def _step(session: Session, job: JobRow, number: int) -> StepShown:
    found = steps_facts(session, job, number)
    if not found:
        raise UsageError(f"job {job.id} has no step {number}; `aver show {job.id}` lists its steps")
    return StepShown(jobs_facts(session, [job])[0], found[0])


def job_shown(session: Session, job: JobRow) -> JobShown:
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
        asked=_asked(session, job),
        waiting_since=_waiting_since(job, attempts),
        command=command_of(session, job),
        folder=origin.folder,
        user=origin.user,
        host=origin.host,
        typed=origin.command,
        secrets=origin.secrets,
        attempts=attempts,
        steps=steps_facts(session, job),
        use=_use(session, job, attempts),
    )


def _use(session: Session, job: JobRow, attempts: tuple[AttemptFacts, ...]) -> tuple[AttemptUse, ...]:
    found = (read_use(session.home, job.run, job.id, one.attempt, one.started_at) for one in attempts[-MOST_SERIES:])
    return tuple(one for one in found if one is not None)


def _asked(session: Session, job: JobRow) -> AskedFacts:
    spec = edited_spec(session, job)
    needs = [*spec.needs.all_of, *(need for group in spec.needs.any_of for need in group)]
    others = [str(number) for term in (spec.after.terms if spec.after else ()) for number, _ in term.jobs]
    return AskedFacts(
        cpus=spec.request.cpus,
        gpus=spec.request.gpus,
        mem_bytes=spec.request.mem_bytes,
        time_s=spec.request.time_s,
        needs=(*(f"{job.run}/{need.job}" for need in needs), *others),
        retries=0 if spec.retry is None else spec.retry.max,
        begin_at=spec.begin_at,
        deadline_at=spec.deadline_at,
        priority=spec.priority,
        comment=spec.comment,
    )


def _waiting_since(job: JobRow, attempts: tuple[AttemptFacts, ...]) -> float | None:
    if job.state is not State.PENDING:
        return None
    ended = [attempt.ended_at for attempt in attempts if attempt.ended_at is not None]
    return max(ended, default=job.submitted_at)


def _run(session: Session, run: RunRow) -> RunShown:
    reader = session.found_reader(str(run.id))
    session.mask([run.id])
    submission = session.submission(run.id)
    origin = submission.origin
    jobs = reader.jobs(run.id, limit=LISTED)
    return RunShown(
        run=run_facts(run, reader.counts(run.id)),
        user=origin.user,
        host=origin.host,
        typed=origin.command,
        params=dict(submission.flow.params),
        unselected=submission.flow.unselected,
        jobs=jobs_facts(session, jobs),
        left_out=run.jobs - len(jobs),
    )
