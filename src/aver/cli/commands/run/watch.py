"""`aver watch`: wait for the settled verdict, by push, not by polling."""

from __future__ import annotations

import click

from aver.cli.attach.wait import Watched, shown_for, wait
from aver.cli.options import DurationType, addresses, json_option
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.judge.run import exit_status_of
from aver.render import verdict

TIMEOUT_STATUS = 124


@click.command("watch")
@addresses
@click.option("--exit-status", "-e", is_flag=True, help="Exit as the jobs ended (see docs/exit-statuses.md).")
@click.option(
    "--timeout",
    type=DurationType(),
    metavar="TIME",
    help="Stop waiting after this (30s, 1h; a bare number is minutes) and exit 124; nothing is cancelled.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing.")
@json_option
def command(ids: tuple[str, ...], exit_status: bool, timeout: float | None, quiet: bool, as_json: bool) -> int:
    """Wait until jobs or runs are settled.

    One line for each change; of a whole run on a terminal a live tree of its jobs. Exits 0 once
    all are settled, or as they ended with --exit-status. Ctrl-C stops waiting and cancels nothing.

    \b
    Examples:
      aver watch 7
      aver watch 3 4 --exit-status --timeout 1h
    """
    session = Session()
    watched = Watched(session, session.ids(ids))
    client = session.connect()
    shown = shown_for(watched)
    is_silent = quiet or as_json
    if not is_silent:
        shown.begin()
    try:
        state = wait(watched, client, (lambda changed: None) if is_silent else shown, timeout)
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
        answer(session.output, watched.ended(exit_status_of(state)), as_json)
    elif not quiet:
        for text in watched.summaries():
            session.output.note(text)
    return exit_status_of(state) if exit_status else 0
