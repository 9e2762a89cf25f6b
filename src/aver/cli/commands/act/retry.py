"""`aver retry`: run jobs again that failed, were lost or were skipped."""

from __future__ import annotations

import os

import click

from aver.cli.options import addresses, json_option
from aver.cli.output.documents import Acted, Done
from aver.cli.output.views import answer
from aver.cli.selection import find_run
from aver.cli.session import Session, user_name
from aver.errors import UsageError
from aver.printable import one_line
from aver.protocol.messages import Retried, Retry


@click.command("retry")
@addresses
@json_option
def command(ids: tuple[str, ...], as_json: bool) -> None:
    """Rerun failed, lost and skipped jobs of a run.

    A run's number means all of its jobs that failed, were lost or were skipped; jobs can also be
    named one by one. Finished work is not repeated. Each rerun is a new attempt, and all are kept.

    \b
    Examples:
      aver retry 3
      aver retry '3/train[seed=2]'
    """
    session = Session()
    numbers = session.ids(ids)
    runs = [find_run(session, text).run.id for text in ids]
    for run in dict.fromkeys(runs):
        _note_changed_file(session, run)
    reply = session.ask(Retry(tuple(numbers), user_name()), Retried)
    answer(session.output, Acted("retry", tuple(Done(job, "will run again") for job in reply.jobs)), as_json)


def _note_changed_file(session: Session, run: int) -> None:
    """A retry runs the flow as it was submitted: say so where its file says something else by now."""
    submission = session.submission(run)
    path = submission.origin.file
    try:
        paths = () if path is None else (path, *submission.flow.included)
        is_newer = max((os.stat(one).st_mtime for one in paths), default=0.0) > session.run_row(run).submitted_at
    except OSError:
        return  # it is gone: there is nothing else to run
    if path is None or not is_newer:
        return
    from aver.client import vault
    from aver.client.changes import merged
    from aver.client.reinit import flow_now  # YAML is paid for only here

    try:
        read = flow_now(submission)
        is_other = (
            read is not None and merged(submission.flow, vault.seal(session.home, read)[0], run) != submission.flow
        )
    except UsageError:
        is_other = True
    if is_other:
        session.output.note(
            f"{one_line(path)} has changed since run {run} was submitted; the retry runs it as it was. "
            f"`aver reinit {run}` runs it as it is now"
        )
