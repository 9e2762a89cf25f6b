"""What srun refuses inside a job as it does outside: a distribution that there is not, GPUs that the job has not."""

from __future__ import annotations

import os
import time

from aver.slurm_cli.srun.options import CHECKED, BadSpecification, Options, task_count
from aver.spec.getopt import BadOption
from aver.spec.sbatch.call import BatchCall, BatchRefused


def check_step(options: Options) -> None:
    """Raise BadOption, in Slurm's words, if the step asks for a bad distribution or for more GPUs than its job has."""
    call = BatchCall(time.time())
    try:
        for name in CHECKED:
            if name in options.values:
                call.take(name, options.get(name) or "")
    except BatchRefused as refused:
        text = str(refused).removeprefix("sbatch: ").replace("sbatch: ", "srun: ")
        raise (BadSpecification if refused.exit_status != 1 else BadOption)(text) from None
    of_job = os.environ.get("SLURM_GPUS_ON_NODE", "")
    asked = call.values.gpus or call.values.gpus_per_task * task_count(options)
    if asked > (int(of_job) if of_job.isdecimal() else 0):
        raise BadOption("error: Invalid generic resource (gres) specification")
