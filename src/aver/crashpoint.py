"""Named instants at which a test may kill the coordinator: `AVER_CRASH_AT=NAME` or `NAME:COUNT`.

Without that variable nothing happens. A kill is a real SIGKILL: nothing is flushed, nothing is said.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "submit-files-written",  # a run's files are there, its events are not
    "heard",  # evidence is taken, nothing of it is durable
    "before-commit",
    "committed",  # durable, nothing of it is acted on or shown
    "acted",  # orders and signals are given, nobody was told
    "told",
    "generated-asked",  # a generating job has completed, its jobs are about to be read
    "generated-read",  # they are read and not yet added
    "generated-added",  # they are added, and nothing of that is durable
    "notifying",  # a verdict is durable, its command is about to be called
    "attached",  # after a restart: witnesses are found, runs are not
    "recovered",
)
SLURM_POINTS = (  # of the cluster's engine, which has a thread of its own
    "slurm-before-sbatch",
    "slurm-after-sbatch",  # the job may be Slurm's, its id is not on disk
    "slurm-id-kept",  # on disk, and nobody has heard of it
    "slurm-records-heard",
    "slurm-queue-heard",
    "slurm-before-forget",  # the verdict is durable, what was handed over is still on disk
)
ALLOCATION_POINTS = (  # of the engine of allocations, likewise
    "allocation-before-sbatch",
    "allocation-after-sbatch",
    "allocation-order-put",
    "allocation-taken-back",  # a cancellation was quicker than every allocation, and nobody knows
    "allocation-looked",
    "allocation-before-forget",
)

_wanted, _, _count = os.environ.get("AVER_CRASH_AT", "").partition(":")
_left = int(_count) if _count.isdigit() else 1


def reached(point: str) -> None:
    global _left
    if point != _wanted:
        return
    _left -= 1
    if _left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
