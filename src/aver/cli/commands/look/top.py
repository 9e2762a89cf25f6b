"""`aver top`: all jobs, live."""

from __future__ import annotations

import os

import click

from aver.cli.session import Session
from aver.errors import UsageError


@click.command("top")
def command() -> int:
    """Watch all jobs live, and act on them with keys.

    Running jobs with their current and requested CPUs and memory, waiting jobs with the reason, and failed jobs.
    Keys: l log, w why, s show, c cancel, r retry, h hold or release, f view, / search, ? help, q quit. Quitting does
    not affect jobs.

    \b
    Examples:
      aver top
    """
    session = Session()
    session.refresh()
    if not session.output.can_draw or not os.isatty(0):
        raise UsageError("top needs a terminal; `aver jobs` and `aver events --follow` are for pipes")
    try:
        from aver.cli.top.screen import show_top  # curses is loaded only here
    except ImportError:
        raise UsageError("top needs Python's curses module; `aver jobs` shows the same once") from None
    return show_top(session)
