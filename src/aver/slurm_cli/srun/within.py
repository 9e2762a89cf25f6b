"""`srun --jobid=N`: a step of a job that runs, called from outside of it."""

from __future__ import annotations

import os

from aver.slurm_cli.facts import Book
from aver.slurm_cli.job_names import parse_job
from aver.slurm_cli.sstat.live_use import key_of
from aver.spec.getopt import BadOption

_INVALID = "error: Unable to confirm allocation for job {}: Invalid job id specified"
_EXPIRED = "error: Unable to confirm allocation for job {}: Job/step already completing or completed"
_PENDING = "error: Unable to confirm allocation for job {}: Job is pending execution"


def enter(text: str) -> None:
    """Set our environment as that of a command in the job; BadOption where it does not run."""
    book = Book.open()
    named = parse_job(text)
    jobs = book.numbered(named.numbers(book)) if named is not None and named.step is None else []
    if len(jobs) != 1:
        raise BadOption(_INVALID.format(text))
    job = jobs[0]
    key = key_of(book, job.row.id)
    if not job.is_active or key is None:
        raise BadOption((_PENDING if job.is_pending else _EXPIRED).format(text))
    number = str(job.row.id)
    os.environ.update(AVER_KEY=key, AVER_HOME=book.home, SLURM_JOB_ID=number, SLURM_JOBID=number)
    os.environ.update(SLURM_JOB_NODELIST=job.node, SLURM_JOB_PARTITION=job.partition, SLURM_JOB_NAME=job.name)
