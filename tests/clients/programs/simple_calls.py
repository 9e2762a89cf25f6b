"""A user's program with simple_slurm: a job, an array and what the queue says. Prints it as JSON."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from simple_slurm import Slurm


def until(path: Path, text: str) -> str:
    deadline = time.monotonic() + 60
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{path} never had {text!r}"
        time.sleep(0.05)
    return path.read_text()


def main() -> dict[str, Any]:
    single = Slurm(job_name="single", output="single-%j.txt", time="00:05:00", mem="200M")
    single.add_cmd("echo first")
    job = single.sbatch("echo second; sleep 300", verbose=False)
    text = until(Path(f"single-{job}.txt"), "second")
    single.squeue.update_squeue()
    queue = {str(number): row["ST"] for number, row in single.squeue.jobs.items()}
    single.scancel.cancel_job(job)
    name = f"many-{Slurm.JOB_ARRAY_MASTER_ID}_{Slurm.JOB_ARRAY_ID}.txt"
    many = Slurm(array=range(3, 6), job_name="many", output=name, open_mode="append")
    array = many.sbatch("echo member $SLURM_ARRAY_TASK_ID", verbose=False)
    path = Path(f"many-{array}_4.txt")
    return {"job": job, "text": text, "queue": queue, "array": array, "member": until(path, "member")}


if __name__ == "__main__":
    document = main()
    print("\n" + json.dumps(document))
