"""What a shell offers where a job or a run is to be named. Never fails: who has no jobs is offered none."""

from __future__ import annotations

from click.shell_completion import CompletionItem

from aver.cli.address import LAST
from aver.cli.session import Session
from aver.errors import AverError
from aver.printable import one_line
from aver.store.read.rows import RunRow

OFFERED = 50


def complete_address(incomplete: str) -> list[CompletionItem]:
    """The newest runs and jobs whose numbers begin so; the names of a run's jobs after its slash."""
    try:
        session = Session()
        reader = session.reader
        if reader is None:
            return []
        run, slash, name = incomplete.partition("/")
        if slash:
            found = session.find(run)
            jobs = reader.jobs(found.id) if isinstance(found, RunRow) else found
            mask = session.mask({job.run for job in jobs[:1]}).whole
            fitting = [job for job in jobs if job.name.startswith(name)][:OFFERED]
            return [CompletionItem(f"{run}/{one_line(mask(job.name))}", help=str(job.state)) for job in fitting]
        runs, newest = reader.runs(limit=OFFERED), reader.newest_jobs(OFFERED)
        mask = session.mask({row.id for row in runs} | {row.run for row in newest}).whole
        known = {row.id: f"{row.state} {mask(row.name)}" for row in runs}
        known |= {row.id: f"{row.state} {mask(row.name)}" for row in newest}
        offered = {LAST: "the newest run", **{str(number): known[number] for number in sorted(known, reverse=True)}}
        fitting_items = [(text, said) for text, said in offered.items() if text.startswith(incomplete)]
        return [CompletionItem(text, help=one_line(said)) for text, said in fitting_items]
    except AverError:
        return []
