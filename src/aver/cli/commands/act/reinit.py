"""`aver reinit`: run again what has a cause to, and all below it."""

from __future__ import annotations

import os

import click

from aver.cli.options import ADDRESS, json_option
from aver.cli.output.documents import Acted, Done
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.cli.submission import set_option
from aver.client.reinit import compare, flow_now
from aver.errors import UsageError
from aver.model.job import FlowSpec
from aver.model.states import State
from aver.protocol.messages import Continued
from aver.store.read.rows import RunRow


@click.command("reinit")
@click.argument("run", type=ADDRESS)
@click.argument("file", required=False)
@click.option("--dry-run", "-n", is_flag=True, help="Show what would run again, and why; change nothing.")
@click.option(
    "--inherit", multiple=True, metavar="NAME", help="Take this variable from the current environment, and compare it."
)
@set_option
@json_option
def command(
    run: str, file: str | None, dry_run: bool, inherit: tuple[str, ...], settings: tuple[str, ...], as_json: bool
) -> None:
    """Rerun jobs whose inputs, command or environment changed.

    Also reruns jobs whose outputs are missing, and all jobs that depend on them. Each is named with its
    cause; finished work without a cause is not repeated. The flow is read again from the file that
    the run was submitted from, or from FILE; reruns use it as it is now. Params keep the run's values
    unless --set changes them.

    \b
    Examples:
      aver reinit 3 --dry-run
      aver reinit 3
      aver reinit 3 changed.yaml
      aver reinit 3 --inherit DATA_DIR
      aver reinit 3 --set n=5
    """
    session = Session()
    found = session.find(run)
    number = found.id if isinstance(found, RunRow) else found[0].run
    if not isinstance(found, RunRow) and not session.run_row(number).is_single:
        raise UsageError(f"{run} is a job of run {number}; give the run: aver reinit {number}")
    flow = _flow_now(session, number, file, settings)
    reinit = compare(session.home, session.found_reader(run), number, flow, inherit, os.environ)
    changes = reinit.changes
    session.mask([number])
    if changes.causes and not dry_run:
        session.ask(reinit.request(user_name()), Continued)
        session.mask([number])
    word = "would run again" if dry_run else "runs again"
    if not changes.causes:
        session.output.note(
            f"nothing to rerun: no input, output, command or variable of run {number} has changed"
            f"{_failed(session, number)}"
        )
    results = tuple(Done(cause.job, f"{word} ({cause.name}): {cause.why}") for cause in changes.causes)
    answer(session.output, Acted("reinit", results), as_json)


def _failed(session: Session, number: int) -> str:
    is_fine = session.run_row(number).state is State.COMPLETED
    return "" if is_fine else f"; `aver retry {number}` runs what failed again"


def _flow_now(session: Session, number: int, file: str | None, settings: tuple[str, ...]) -> FlowSpec | None:
    """The flow as its file has it now; None, with a word, if the file that it came from is gone."""
    from aver.spec.flow.params import parse_settings  # YAML is paid for only here

    submission = session.submission(number)
    found = flow_now(submission, file, parse_settings(settings))
    if found is None and settings:
        raise UsageError(f"--set needs the flow's file: aver reinit {number} FILE --set {settings[0]}")
    if found is None and submission.origin.file is not None:
        session.output.note(f"{submission.origin.file} is gone: only inputs and outputs are compared")
    return found
