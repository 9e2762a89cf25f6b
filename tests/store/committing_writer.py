"""A process that commits batches until it is killed: `committing_writer.py DATABASE FIRST_RUN LIMIT_BYTES`.

Each batch is a run with ten jobs, each with its plan and its end. After each commit the run's number goes to stdout,
so that whoever reads it knows what must be durable. A failed commit is said and tried again without the limit.
"""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

from store_events import ended, planned, submitted

from aver.errors import CantWriteError
from aver.model.events import Event
from aver.store.write.writer import Writer

JOBS = 10


def batch(run: int) -> list[Event]:
    events: list[Event] = [submitted(run, run + 1, JOBS)]
    for job in range(run + 1, run + 1 + JOBS):
        events += [planned(job, run=run), ended(job, run=run)]
    return events


def main(path: Path, run: int, limit_bytes: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    writer = Writer.open(path)
    if limit_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, resource.RLIM_INFINITY))
    while True:
        try:
            writer.commit(batch(run))
        except CantWriteError as error:
            print(f"refused {run} {error}", flush=True)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            writer.commit(batch(run))
            print(run, flush=True)
            writer.close()
            return
        print(run, flush=True)
        run += JOBS + 1


main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
