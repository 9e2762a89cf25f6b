"""`aver why`: what happened, the evidence, what to do next."""

from __future__ import annotations

import time

import click

from aver.cli.explanation import explain
from aver.cli.facts import files_of
from aver.cli.options import ADDRESS, json_option
from aver.cli.output.report_documents import CauseFacts, CauseList, HintFacts
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.errors import UsageError
from aver.model.states import SETTLED, State
from aver.printable import one_line
from aver.store.read.job_list import Wanted, find_jobs
from aver.store.read.rows import JobRow, RunRow


@click.command("why")
@click.argument("address", metavar="[ID]", required=False, type=ADDRESS)
@json_option
def command(address: str | None, as_json: bool) -> None:
    """Explain what happened to a job or a run, with the evidence and the next commands.

    For a job: one sentence, then what each source said and when, then the next commands to type.
    For a run: its failures grouped by cause, with the next command for each. Well-known lines of the
    jobs' output are quoted as hints; a hint is not evidence. Without ID: the newest job that did not complete.

    \b
    Examples:
      aver why
      aver why 7
      aver why 3
      aver why 3/train --json
    """
    session = Session()
    session.refresh()
    if address is None:
        address = _newest(session)
    found = session.find(address)
    if isinstance(found, RunRow):
        from aver.spec.flow.file import collector_paused  # a job needs no parser of flows

        with collector_paused():
            answer(session.output, causes_of(session, found), as_json)
        return
    job = session.find_job(address)
    answer(session.output, explain(session, job), as_json)
    if not as_json and job.state is State.FAILED and job.exit is not None:
        _note_hint(session, job)


def causes_of(session: Session, run: RunRow) -> CauseList:
    from aver.cli.logs import RunLogs  # most calls are for one job
    from aver.render.causes import SHOWN
    from aver.report.causes import HINTS_SHOWN, diagnose
    from aver.store.read.large_run import failures

    reader = session.found_reader(str(run.id))
    rows, left_out = failures(reader, run.id, SHOWN)
    counts = reader.counts(run.id)
    masking = session.mask([run.id])
    found = diagnose(run.id, rows, reader.request, RunLogs(session, run.id, rows).paths, masking, left_out)
    causes = tuple(
        CauseFacts(
            seen.cause.state.value,
            seen.cause.sentence,
            seen.cause.count,
            tuple(job.job for job in seen.cause.jobs[:SHOWN]),
            tuple(
                HintFacts(one.hint.name, one.hint.line, one.hint.advice, one.count, one.job)
                for one in seen.hints[:HINTS_SHOWN]
            ),
            seen.logs_read,
            seen.cause.next,
        )
        for seen in found.causes
    )
    known = {state.value: counts[state] for state in State if state in counts}
    unsettled = sum(count for state, count in counts.items() if not state.is_settled)
    return CauseList(run.id, run.name, run.state.value, known, unsettled, causes)


def _note_hint(session: Session, job: JobRow) -> None:
    """Say what well-known line the job's output ends with: about the answer, and no part of it."""
    from aver.report.causes import hint_of  # few jobs failed

    files = files_of(session, job, job.attempt)
    hint = hint_of([path for path in (files.stderr, files.stdout) if path is not None], session.output.masking)
    if hint is not None:
        session.output.note(f"hint ({hint.name}): `{one_line(hint.line)}`; {hint.advice}")


def _newest(session: Session) -> str:
    """The newest job that is over and did not complete; skipped jobs only follow others."""
    bad = SETTLED - {State.COMPLETED, State.SKIPPED}
    reader = session.found_reader("to explain")
    jobs = reader.listed(find_jobs(reader, Wanted(states=bad), 1, time.time())[0])
    if not jobs:
        raise UsageError("no job failed; `aver why ID` explains any job, and `aver jobs` lists them")
    session.output.note(f"job {jobs[0].id} ({one_line(jobs[0].name)}) is the newest that did not complete")
    return str(jobs[0].id)
