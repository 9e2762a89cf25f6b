"""The end of what failed jobs of a flow wrote: the first thing that somebody wants to see."""

from __future__ import annotations

from aver.cli.attach.follow import tail_offset
from aver.cli.facts import files_of
from aver.cli.session import Session
from aver.model.states import State
from aver.printable import one_line
from aver.store.read.rows import JobRow

JOBS = 3
LOOKED_AT = 200  # failed jobs whose files are looked for
LINES = 10
BYTES = 4096
STATES = (State.FAILED, State.OUT_OF_MEMORY, State.TIMEOUT)


def show_tails(session: Session, run: int) -> None:
    """Write the last lines of the first failed jobs that wrote something to stderr, and how many more failed."""
    output = session.output
    reader = session.found_reader(str(run))
    shown = 0
    for job in reader.jobs(run, STATES, limit=LOOKED_AT):
        path, lines = _end_of(session, job)
        if not lines:
            continue
        output.note(f"job {job.id} ({one_line(job.name)}) {job.state}; {one_line(path)} ends:")
        for line in lines:
            output.quote(line)
        shown += 1
        if shown == JOBS:
            break
    counts = reader.counts(run)
    more = sum(counts.get(state, 0) for state in STATES) - shown
    if more:
        what = f"{more} more job{'s' if more > 1 else ''} failed" if shown else f"{more} failed without output"
        output.note(f"{what}; `aver why {run}` groups them by cause")


def _end_of(session: Session, job: JobRow) -> tuple[str, list[bytes]]:
    """The end of what its newest attempt wrote: of stderr where that is separate and has something in it."""
    if not job.attempt:
        return "", []
    files = files_of(session, job, job.attempt)
    for path in filter(None, (files.stderr, files.stdout)):
        if lines := _last_lines(path):
            return path, lines
    return "", []


def _last_lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb", buffering=0) as file:
            begin = tail_offset(file, LINES)
            end = file.seek(0, 2)
            file.seek(max(begin, end - BYTES))
            return (file.read(BYTES) or b"").splitlines()
    except OSError:
        return []
