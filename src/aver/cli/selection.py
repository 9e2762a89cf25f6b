"""Which run a report is about: one that is named, that of jobs that are named, or the newest."""

from __future__ import annotations

from aver.cli.session import Session
from aver.errors import UsageError
from aver.model.record import Record
from aver.store.read.rows import RunRow


class Chosen(Record):
    """A run, and the numbers of the jobs that are meant; None: all of them."""

    run: RunRow
    jobs: frozenset[int] | None


def find_run(session: Session, text: str | None) -> Chosen:
    """What an address names; without one the newest run, with a word about it. Raise UsageError if there is none."""
    if text is None:
        newest = session.found_reader("to report on").runs(limit=1)
        if not newest:
            raise UsageError("no runs yet; start one with `aver run -- COMMAND`")
        session.output.note(f"run {newest[0].id} ({newest[0].name}) is the newest")
        return Chosen(newest[0], None)
    found = session.find(text)
    if isinstance(found, RunRow):
        return Chosen(found, None)
    run = session.run_row(found[0].run)
    return Chosen(run, None if run.is_single else frozenset(job.id for job in found))


def whole_run(session: Session, text: str, command: str) -> RunRow:
    """The run that is named, for what can be done to whole runs only."""
    chosen = find_run(session, text)
    if chosen.jobs is not None:
        raise UsageError(f"{text} is of run {chosen.run.id}; give the run: aver {command} {chosen.run.id}")
    return chosen.run
