"""A user's program with dask-jobqueue: one worker, which is a Slurm job. Prints what Dask says, as JSON."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from dask.distributed import Client
from dask_jobqueue import SLURMCluster


def refuse() -> None:
    raise ValueError("not this one")


def main() -> dict[str, Any]:
    cluster = SLURMCluster(
        cores=1, memory="1GB", processes=1, walltime="00:05:00", interface="lo", log_directory="worker-logs",
        scheduler_options={"dashboard_address": None}, worker_extra_args=["--no-dashboard"],
    )  # fmt: skip
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=1)
        client.wait_for_workers(1, timeout=100)
        squares = client.map(lambda number: number * number, range(5))
        job = client.submit(lambda: os.environ["SLURM_JOB_ID"]).result(timeout=60)
        error = client.submit(refuse).exception(timeout=60)
        found = {
            "sum": client.submit(sum, squares).result(timeout=60),
            "job": job,
            "ids": [worker.job_id for worker in cluster.workers.values()],
            "status": [str(worker.status.name) for worker in cluster.workers.values()],
            "error": f"{type(error).__name__}: {error}",
        }
        cluster.scale(0)
        deadline = time.monotonic() + 60
        while cluster.workers or cluster.scheduler_info["workers"]:
            assert time.monotonic() < deadline, "the worker stays"
            time.sleep(0.1)
    return found


if __name__ == "__main__":
    document = main()
    print("\n" + json.dumps(document))
