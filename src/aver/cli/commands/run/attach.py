"""`aver attach`: the terminal of a job that was started with one."""

from __future__ import annotations

import os
import signal

import click

from aver.cli.attach.signals import SignalReceived, heard, listen
from aver.cli.attach.wait import Watched, wait
from aver.cli.options import ADDRESS
from aver.cli.session import Session
from aver.errors import UsageError
from aver.judge.run import exit_status_of
from aver.store.read.rows import RunRow

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("attach")
@click.argument("address", metavar="JOB", type=ADDRESS)
def command(address: str) -> int:
    """Attach to the terminal of a job that was started with --pty.

    Keys go to the job, and its output is shown, from the newest part on. Ctrl-\\ detaches, and the job keeps running.
    When the job ends, exits as `aver run` does. Several terminals may be attached at once. A small process inside the
    job holds the terminal; its memory counts towards the job's.

    \b
    Examples:
      aver submit --pty -- python
      aver attach last
      aver run --pty -- htop
    """
    session = Session()
    session.refresh()
    found = session.find(address)
    if isinstance(found, RunRow) or len(found) > 1:
        raise UsageError(f"{address} is not one job; `aver jobs {address}` lists them")
    job = found[0]
    if job.state.is_settled:
        raise UsageError(f"job {job.id} is {job.state}; `aver log {job.id}` shows its output")
    return attach_and_wait(session, job.id)


def attach_and_wait(session: Session, number: int) -> int:
    """Attach; once the job has ended, wait for its verdict, say it, and return the exit status; 0 if detached."""
    if not session.output.out_is_terminal or not os.isatty(0):
        raise UsageError(f"attach needs a terminal; `aver log {number} -f` is for pipes")
    from aver.cli.terminal.window import attach  # only here

    watched = Watched(session, [number])
    try:
        with listen(*SIGNALS):
            if not attach(session, watched.jobs()[0]):
                return 0
            client = session.connect()
            try:
                state = wait(watched, client, lambda changed: None)
            finally:
                client.close()
    except SignalReceived as received:
        heard()
        session.output.note(f"no longer attached; job {number} goes on; aver attach {number}")
        return 128 + received.number
    for text in watched.summaries():
        session.output.note(text)
    return exit_status_of(state)
