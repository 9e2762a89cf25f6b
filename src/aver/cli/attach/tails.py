"""The end of what failed jobs of a flow wrote: the first thing that somebody wants to see."""

from __future__ import annotations

from aver.cli.attach.follow import tail_offset
from aver.cli.facts import files_of
from aver.cli.session import Session
from aver.model.states import State
from aver.printable import one_line

JOBS = 3
LINES = 10
BYTES = 4096
STATES = (State.FAILED, State.OUT_OF_MEMORY, State.TIMEOUT)


def show_tails(session: Session, run: int) -> None:
    """Write the last lines of the first failed jobs to stderr; jobs without output are passed over."""
    output = session.output
    for job in session.found_reader(str(run)).jobs(run, STATES, limit=JOBS):
        if not job.attempt:
            continue
        path = files_of(session, job, job.attempt).stdout
        lines = _last_lines(path)
        if not lines:
            continue
        output.note(f"job {job.id} ({one_line(job.name)}) {job.state}; {one_line(path)} ends:")
        for line in lines:
            output.quote(line)


def _last_lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb", buffering=0) as file:
            begin = tail_offset(file, LINES)
            end = file.seek(0, 2)
            file.seek(max(begin, end - BYTES))
            return (file.read(BYTES) or b"").splitlines()
    except OSError:
        return []
