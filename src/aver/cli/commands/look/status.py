"""`aver status`: whether a coordinator runs, and what it has to do."""

from __future__ import annotations

import os
from collections import Counter

import click

from aver.cli.options import json_option
from aver.cli.output.documents import CoordinatorFacts
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.errors import UnreachableError
from aver.model.states import UNSETTLED, State
from aver.protocol.client import Client
from aver.protocol.messages import Ping, Pong
from aver.store.losses import read_losses

MOST_LOSSES = 5


@click.command("status")
@json_option
def command(as_json: bool) -> int:
    """Show whether the coordinator runs, and its queue.

    Does not start one: a coordinator starts when it is needed and leaves when it is idle.
    Exits 1 when runs wait and no coordinator drives them.

    \b
    Example:
      aver status --json
    """
    session = Session()
    try:
        client = Client.connect(session.home, start=False)
    except UnreachableError:
        facts = nobody(session)
    else:
        facts = read_status(session, client, "runs")
        client.close()
    answer(session.output, facts, as_json)
    return 1 if not facts.is_running and (facts.running or facts.pending) else 0


def read_status(session: Session, client: Client, verb: str) -> CoordinatorFacts:
    """Ask the coordinator who it is."""
    reply = client.ask(Ping(), Pong)
    running, pending = to_do(session)
    return CoordinatorFacts(
        is_running=True,
        pid=reply.pid,
        version=reply.version,
        running=running,
        pending=pending,
        home=str(session.home.path),
        detail=f"coordinator {reply.pid} {verb}: {running} running, {pending} pending, home {session.home.path}",
        problems=(
            *((reply.problem,) if reply.problem else ()),
            *read_losses(os.fspath(session.home.path))[-MOST_LOSSES:],
        ),
    )


def to_do(session: Session) -> tuple[int, int]:
    """How many jobs run, and how many have not begun: held ones and those that wait for others or for a cluster too."""
    counts = Counter({} if session.reader is None else session.reader.unsettled_counts())
    pending = counts[State.PENDING] + counts[State.SUBMITTED]
    return sum(counts[state] for state in UNSETTLED) - pending, pending


def nobody(session: Session) -> CoordinatorFacts:
    """No coordinator answers. One that died has left its runs to the next."""
    running, pending = to_do(session)
    waiting = 0 if session.reader is None else len(session.reader.unsettled_runs())
    nobodys = f"{waiting} runs are unfinished, and " if waiting > 1 else "1 run is unfinished, and "
    return CoordinatorFacts(
        is_running=False,
        pid=None,
        version=None,
        running=running,
        pending=pending,
        home=str(session.home.path),
        detail=(nobodys if waiting else "")
        + f"no coordinator runs in {session.home.path}; the next command that needs one starts it",
        problems=tuple(read_losses(os.fspath(session.home.path))[-MOST_LOSSES:]),
    )
