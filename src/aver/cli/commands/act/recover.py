"""`aver recover`: give jobs that ran out of memory or time more of it, and rerun them."""

from __future__ import annotations

import sys
from typing import Any

import click

from aver.cli.attach.wait import Watched, shown_for, wait
from aver.cli.correction import growth_options, rules_of
from aver.cli.options import ADDRESS, json_option
from aver.cli.output.report_documents import Recovered
from aver.cli.output.views import answer
from aver.cli.recover_pass import Pass, begin, plan_pass
from aver.cli.selection import whole_run
from aver.cli.session import Session
from aver.errors import UsageError
from aver.judge.run import exit_status_of
from aver.model.states import State
from aver.report.measure import Rules
from aver.store.read.rows import RunRow

NOTHING_STATUS = 1  # jobs failed, and another attempt helps none of them


@click.command("recover")
@click.argument("run", type=ADDRESS)
@click.option("--dry-run", "-n", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--watch", "-w", is_flag=True, help="Wait for the run to end, and recover again while that helps.")
@click.option(
    "--max-rounds",
    type=click.IntRange(1),
    default=5,
    metavar="N",
    help="Continue the run at most N times in total (default: 5).",
)
@growth_options
@json_option
def command(run: str, dry_run: bool, yes: bool, watch: bool, max_rounds: int, as_json: bool, **options: Any) -> int:
    """Give jobs that ran out of memory or time more of it, and rerun them.

    Jobs that ran out of memory or time get more of it: in the flow's file, if the run came from
    one, as `aver usage --correct` does, and in the run. They run again, together with jobs
    that were lost with their node or left no record, and with jobs that `aver reinit` would rerun. Jobs that
    never ran start when what they need completes; finished work is not repeated. Failures that a rerun can't fix
    are listed and left alone; the exit status is 1 if there are no others.

    On a terminal it shows what it would do and asks; elsewhere it needs --yes.

    \b
    Examples:
      aver recover 3 --dry-run
      aver recover 3
      aver recover 3 --yes --watch --max-mem 64G
    """
    if as_json and not yes and not dry_run:
        raise UsageError("--json needs --yes or --dry-run: it can't ask for confirmation")
    if not yes and not dry_run and not sys.stdin.isatty():
        whole_run(Session(), run, "recover")  # first of all, is there such a run?
        raise UsageError(f"no terminal to ask for confirmation: try  aver recover {run} --dry-run , then add --yes")
    session = Session()
    rules = rules_of(options)
    row = _settled(session, run, watch, as_json)
    while True:
        found = plan_pass(session, row, rules)
        if not found.has_work or dry_run:
            answer(session.output, found.document(dry_run, None), as_json)
            return _status(row.state, found, watch)
        _bound(row, max_rounds)
        if not _go_on(session, row, rules, found, yes, watch and as_json, as_json):
            return 0
        if not watch:
            return 0
        session = Session(session.home, session.output)  # the run has another flow now
        row = _settled(session, run, watch, as_json)
        if row.round > max_rounds and row.state is not State.COMPLETED:
            session.output.note(f"run {row.id} is {row.state}, and was continued {row.round - 1} times: --max-rounds")
            return exit_status_of(row.state)


def _go_on(session: Session, row: RunRow, rules: Rules, found: Pass, yes: bool, is_silent: bool, as_json: bool) -> bool:
    """Show what is to be done, ask where that is wanted, and do it; False if the answer was no."""
    if not yes:
        answer(session.output, found.document(False, None), as_json)
        if not click.confirm("Go on?", err=True):
            session.output.note("nothing was changed")
            return False
    number = begin(session, found)
    done: Recovered = found.document(False, number)
    if yes and not is_silent:
        answer(session.output, done, as_json)
    elif not as_json:
        session.output.note(f"run {row.id} goes on in round {number}; aver watch {row.id}")
    return True


def _settled(session: Session, text: str, waits: bool, is_silent: bool) -> RunRow:
    while True:
        row = whole_run(session, text, "recover")
        if row.state.is_settled:
            return row
        if not waits:
            raise UsageError(
                f"run {row.id} is {row.state}: it can be recovered when it is settled; aver watch {row.id}"
            )
        _wait(session, row, is_silent)


def _wait(session: Session, row: RunRow, is_silent: bool) -> None:
    watched = Watched(session, [row.id])
    client = session.connect()
    shown = shown_for(watched)
    if not is_silent:
        shown.begin()
    try:
        wait(watched, client, (lambda changed: None) if is_silent else shown)
    finally:
        shown.end()
        client.close()


def _bound(row: RunRow, max_rounds: int) -> None:
    if row.round > max_rounds:
        raise UsageError(
            f"run {row.id} was continued {row.round - 1} times already; --max-rounds {row.round} allows one more"
        )


def _status(state: State, found: Pass, watch: bool) -> int:
    if watch and not found.has_work:
        return exit_status_of(state)
    return NOTHING_STATUS if found.hopeless and not found.has_work else 0
