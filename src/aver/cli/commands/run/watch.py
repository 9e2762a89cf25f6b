"""`aver watch`: wait for the settled verdict, by push, not by polling."""

from __future__ import annotations

from collections.abc import Sequence

import click

from aver.cli.attach.wait import Watched, shown_for, wait, wait_any
from aver.cli.options import ADDRESS, DurationType, json_option
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.errors import UsageError
from aver.judge.run import exit_status_of
from aver.render import verdict

TIMEOUT_STATUS = 124


@click.command("watch")
@click.argument("ids", metavar="ID...", nargs=-1, type=ADDRESS)
@click.option(
    "--any", "for_any", is_flag=True, help="Stop as soon as one is settled; without ID: of all unsettled runs."
)
@click.option(
    "--exit-status", "-e", is_flag=True, help="Exit as the jobs ended (see docs/en/reference/exit-statuses.md)."
)
@click.option(
    "--timeout",
    type=DurationType(),
    metavar="TIME",
    help="Stop waiting after this (30s, 1h; a bare number is minutes) and exit 124; nothing is cancelled.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing.")
@json_option
def command(
    ids: tuple[str, ...], for_any: bool, exit_status: bool, timeout: float | None, quiet: bool, as_json: bool
) -> int:
    """Wait until jobs or runs are settled.

    Prints a line for each change; for whole runs on a terminal, a live tree of their jobs. Exits 0 once
    all are settled, or as they ended with --exit-status. Ctrl-C stops waiting and cancels nothing.

    With --any it stops as soon as one is settled, and lists only those that are; with --json, `waiting`
    has the others.

    \b
    Examples:
      aver watch 7
      aver watch 3 4 --exit-status --timeout 1h
      aver watch --any 3 4 5 --json
    """
    session = Session()
    watched = Watched(session, _numbers(session, ids, for_any))
    client = session.connect()
    shown = shown_for(watched)
    is_silent = quiet or as_json
    if not is_silent:
        shown.begin()
    seen = (lambda changed: None) if is_silent else shown
    try:
        if for_any:
            settled = wait_any(watched, client, seen, timeout)
            others = [number for number in watched.ids if number not in settled]
            watched = Watched(session, settled)
            state = watched.state()
        else:
            others = []
            state = wait(watched, client, seen, timeout)
    except TimeoutError:
        shown.end()
        if as_json:
            answer(session.output, watched.ended(TIMEOUT_STATUS), as_json)
        if not quiet:
            waited = verdict.duration_words(timeout or 0.0)
            session.output.note(f"not settled after {waited}; nothing was cancelled")
        return TIMEOUT_STATUS
    finally:
        shown.end()
        client.close()
    if as_json:
        answer(session.output, watched.ended(exit_status_of(state), others), as_json)
    elif not quiet:
        for text in watched.summaries():
            session.output.note(text)
    return exit_status_of(state) if exit_status else 0


def _numbers(session: Session, ids: Sequence[str], for_any: bool) -> list[int]:
    if ids:
        return session.ids(ids)
    if not for_any:
        raise UsageError("missing argument 'ID...'; `aver watch --help` explains")
    unsettled = session.found_reader("to wait for").unsettled_runs()
    if not unsettled:
        raise UsageError("nothing to wait for: every run is settled; `aver runs` lists them")
    return unsettled
