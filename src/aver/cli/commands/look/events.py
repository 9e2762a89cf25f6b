"""`aver events`: every change of jobs and runs, numbered, so that a reader can go on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from aver.cli.output.json import encode_line
from aver.cli.session import Session
from aver.render.masking import to_bytes
from aver.report.change_events import EventFacts, event_facts
from aver.store.read.rows import RunRow

PAGE = 1000
LOOK_S = 0.2  # how often the store is looked at; one look reads one number
REFRESH_S = 10.0  # how often --follow sees to it that a coordinator drives unsettled runs


@click.command("events")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--since", type=click.IntRange(min=0), default=0, metavar="SEQ", help="Only events after this number.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new events until Ctrl-C.")
def command(ids: tuple[str, ...], since: int, follow: bool) -> None:
    """Print changes of jobs and runs as JSON lines, from any point on.

    One line for each submission, each state change of a job or run, and each request of a person. `seq` only grows,
    and events never change: a reader that continues with --since and the last `seq` it handled misses nothing.
    With IDs: only events of these jobs and runs.

    \b
    Examples:
      aver events --since 120
      aver events 3 --follow
      aver events | jq -c 'select(.what == "run" and .is_settled)'
    """
    session = Session()
    session.refresh()
    stream = _Stream(session, ids)
    last = stream.write_after(since)
    refreshed_at = time.monotonic()
    while follow:
        session.output.pause(LOOK_S)
        if time.monotonic() - refreshed_at > REFRESH_S:
            session.refresh()
            refreshed_at = time.monotonic()
        last = stream.write_after(last)


class _Stream:
    """Writes the events of what was chosen."""

    def __init__(self, session: Session, ids: Sequence[str]) -> None:
        self._session = session
        self._runs: set[int] = set()
        self._jobs: set[int] = set()
        self._masked: set[int] = set()
        self._has_choice = bool(ids)
        for text in ids:
            found = session.find(text)
            if isinstance(found, RunRow):
                self._runs.add(found.id)
            else:
                self._jobs |= {job.id for job in found}
                self._runs |= {job.run for job in found if session.run_row(job.run).is_single}

    def write_after(self, seq: int) -> int:
        """Write the events numbered above `seq`; return the number up to which nothing is left to write."""
        reader = self._session.reader
        if reader is None:
            return seq
        end = reader.last_seq()
        while seq < end:
            page = reader.changes(seq, PAGE)
            lines = [self._line(facts) for stored in page if (facts := event_facts(stored)) and self._is_chosen(facts)]
            if lines:
                self._session.output.raw(to_bytes("".join(lines)))
            if len(page) < PAGE:
                return max(end, page[-1].seq) if page else end
            seq = page[-1].seq
        return seq

    def _is_chosen(self, facts: EventFacts) -> bool:
        return not self._has_choice or facts.run in self._runs or facts.job in self._jobs

    def _line(self, facts: EventFacts) -> str:
        if facts.run not in self._masked:
            self._session.mask([facts.run])
            self._masked.add(facts.run)
        return encode_line(facts, self._session.output.masking) + "\n"
