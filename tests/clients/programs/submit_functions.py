"""A user's program with submitit. Prints, as one JSON document, what submitit says of each job."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import submitit


def add(first: int, second: int) -> int:
    print(f"adding {first} and {second}")
    print("a line of stderr", file=sys.stderr)
    return first + second


def divide(number: int) -> float:
    return number / 0


def whoami() -> list[str | None]:
    environment = submitit.JobEnvironment()
    return [environment.job_id, os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")]


def rank_of(_: int) -> tuple[int, int]:
    environment = submitit.JobEnvironment()
    return environment.global_rank, environment.num_tasks


class Counter:
    """Counts to `total`, and takes its count along when it is interrupted before its time limit."""

    def __init__(self) -> None:
        self.count = 0
        self.restarts: list[str | None] = []

    def __call__(self, total: int, pause_s: float) -> dict[str, Any]:
        self.restarts.append(os.environ.get("SLURM_RESTART_COUNT"))
        while self.count < total:
            self.count += 1
            time.sleep(pause_s)
        return {"count": self.count, "restarts": self.restarts}

    def checkpoint(self, total: int, pause_s: float) -> submitit.helpers.DelayedSubmission:
        return submitit.helpers.DelayedSubmission(self, total, pause_s / 100)


def executor(folder: str = "logs/%j", **settings: Any) -> submitit.AutoExecutor:
    made = submitit.AutoExecutor(folder=folder, cluster="slurm")
    made.update_parameters(timeout_min=5, mem_gb=1, cpus_per_task=1, **settings)
    return made


def settled_state(job: submitit.Job[Any]) -> str:
    """submitit's word for the job's state, once it is no longer on its way."""
    while not job.watcher.is_done(job.job_id, mode="force"):
        time.sleep(0.1)
    return job.state


def failure_of(job: submitit.Job[Any]) -> dict[str, Any]:
    try:
        value = job.result()
    except submitit.core.utils.UncompletedJobError as error:
        return {"error": type(error).__name__, "text": str(error), "state": settled_state(job)}
    return {"error": None, "value": value, "state": settled_state(job)}


def outcomes() -> dict[str, Any]:
    jobs = executor(name="outcomes")
    good, bad, gone = jobs.submit(add, 2, 3), jobs.submit(divide, 7), jobs.submit(os._exit, 9)
    found: dict[str, Any] = {"good": {"value": good.result(), "state": settled_state(good)}}
    found["good"] |= {"stdout": good.stdout(), "stderr": good.stderr(), "id": good.job_id}
    found["bad"] = failure_of(bad) | {"exception": type(bad.exception()).__name__, "id": bad.job_id}
    gone._results_timeout_s = 1
    found["gone"] = failure_of(gone) | {"id": gone.job_id}
    return found


def array() -> dict[str, Any]:
    jobs = executor(name="array", slurm_array_parallelism=2)
    members = jobs.map_array(add, [1, 2, 3], [10, 20, 30])
    with jobs.batch():
        last = [jobs.submit(whoami), jobs.submit(divide, 1)]
    return {
        "ids": [job.job_id for job in members],
        "values": [job.result() for job in members],
        "states": [settled_state(job) for job in members],
        "stdout": [job.stdout() for job in members],
        "last ids": [job.job_id for job in last],
        "last": [failure_of(job) for job in last],
    }


def checkpoint() -> dict[str, Any]:
    """One minute of time, and a warning 52 s before its end: after 8 s. Once it goes on, once it may not."""
    jobs = executor("logs", name="checkpoint", slurm_signal_delay_s=52)
    jobs.update_parameters(timeout_min=1)
    goes_on = jobs.submit(Counter(), 60, 0.5)
    once = submitit.AutoExecutor(folder="logs", cluster="slurm", slurm_max_num_timeout=0)
    once.update_parameters(timeout_min=1, mem_gb=1, slurm_signal_delay_s=52)
    given_up = once.submit(Counter(), 60, 0.5)
    found = {"given up": failure_of(given_up), "goes on": failure_of(goes_on)}
    found["goes on"] |= {"id": goes_on.job_id, "stderr": goes_on.stderr(), "stdout": goes_on.stdout()}
    return found


def cancel() -> dict[str, Any]:
    jobs = executor(name="cancel")
    job, left = jobs.submit(time.sleep, 300), jobs.submit(add, 1, 1)
    while job.get_info(mode="force").get("State") != "RUNNING":
        time.sleep(0.1)
    node = job.get_info(mode="force")["NodeList"]
    job.cancel()
    return {"state": settled_state(job), "done": job.done(), "node": node, "left": left.result(), "id": job.job_id}


def tasks() -> dict[str, Any]:
    jobs = executor(name="tasks", tasks_per_node=3)
    job = jobs.submit(rank_of, 0)
    return {"values": job.results(), "state": settled_state(job), "id": job.job_id}


if __name__ == "__main__":
    Path("logs").mkdir(exist_ok=True)
    parts = {"outcomes": outcomes, "array": array, "checkpoint": checkpoint, "cancel": cancel, "tasks": tasks}
    print(json.dumps(parts[sys.argv[1]]()))
