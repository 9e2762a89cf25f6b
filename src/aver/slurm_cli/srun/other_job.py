"""srun and a job that is not its own: a step of the job that --jobid names, and the job that --test-only asks about."""

from __future__ import annotations

import os
import time

from aver.client.origin import origin_of
from aver.home import Home
from aver.model.codec import encode
from aver.protocol import fast_client
from aver.slurm_cli.facts import Book
from aver.slurm_cli.job_names import parse_job
from aver.slurm_cli.output import say
from aver.slurm_cli.settings import secret_names
from aver.slurm_cli.srun.options import NOT_AVAILABLE, BadSpecification, Options, more_nodes
from aver.slurm_cli.sstat.attempt_key import key_of
from aver.spec.getopt import BadOption
from aver.spec.sbatch.table import NOT_SERVED, sbatch_table


def enter(text: str) -> None:
    """Take on the environment of a command in the job that --jobid names; BadOption if it does not run."""
    refused = f"error: Unable to confirm allocation for job {text}"
    book = Book.open()
    named = parse_job(text)
    jobs = book.numbered(named.numbers(book)) if named is not None and named.step is None else []
    if len(jobs) != 1:
        raise BadOption(f"{refused}: Invalid job id specified")
    job = jobs[0]
    key = key_of(book, job.row.id)
    if not job.is_active or key is None:
        why = "Job is pending execution" if job.is_pending else "Job/step already completing or completed"
        raise BadOption(f"{refused}: {why}")
    number = str(job.row.id)
    os.environ.update(AVER_KEY=key, AVER_HOME=book.home, SLURM_JOB_ID=number, SLURM_JOBID=number)
    os.environ.update(SLURM_JOB_NODELIST=job.node, SLURM_JOB_PARTITION=job.partition, SLURM_JOB_NAME=job.name)


def test_only(options: Options) -> int:
    """Say when its job would start, and submit nothing; BadOption if it would be refused."""
    if more_nodes(options):
        say(f"allocation failure: {NOT_AVAILABLE}")
        return 1
    home = Home.find()
    home.prepare()
    known = sbatch_table().takes
    given = [[name, options.get(name) or ""] for name in sorted({*options.values, *options.flags}) if name in known]
    wire = fast_client.connect(os.fspath(home.path))
    try:
        wire.send(
            {
                "op": "sbatch",
                "options": [pair for pair in given if pair[0] not in (*NOT_SERVED, "export")],
                "script": "#!/bin/sh\n",
                "name": os.path.basename(options.command[0]),
                "origin": encode(origin_of(("srun",), secret_names())),
            }
        )
        reply = wire.receive()
    finally:
        wire.close()
    if reply.get("ok") is not True:
        text = str(reply.get("error")).removeprefix("sbatch: ").replace("sbatch: ", "srun: ")
        if reply.get("status", 1) != 1:
            raise BadSpecification(text)
        _, _, why = text.rpartition("Batch job submission failed: ")
        say(f"allocation failure: {why}")
        return 1
    if "quiet" not in options.flags:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(max(time.time(), reply["begin_at"] or 0.0)))
        where = f"on nodes {os.uname().nodename.partition('.')[0]} in partition {reply['partition']}"
        say(f"srun: Job {reply['run']} to start at {at} using {reply['cpus']} processors {where}")
    return 0
