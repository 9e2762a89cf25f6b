"""A user's program with PSI/J: one job for each outcome. Prints PSI/J's states and exit codes, as JSON."""

from __future__ import annotations

import datetime
import json
import os
import time
from pathlib import Path
from typing import Any

from psij import Job, JobAttributes, JobExecutor, JobSpec, ResourceSpecV1

WAIT = datetime.timedelta(seconds=90)
SCRIPTS = {
    "good": "echo a line of $SLURM_JOB_ID",
    "code": "exit 3",
    "signal": "kill -9 $$",
    "late": "sleep 60",
    "cancelled": "sleep 60",
}


def main() -> dict[str, Any]:
    executor = JobExecutor.get_instance("slurm")
    executor.config.queue_polling_interval = 1
    executor.config.initial_queue_polling_delay = 1
    jobs = {}
    for name, script in SCRIPTS.items():
        seconds = 3 if name == "late" else 300
        spec = JobSpec(executable="/bin/sh", arguments=["-c", script], stdout_path=Path(os.getcwd(), f"{name}.txt"))
        spec.resources = ResourceSpecV1(process_count=1)
        spec.attributes = JobAttributes(duration=datetime.timedelta(seconds=seconds))
        spec.launcher = "single"
        jobs[name] = Job(spec)
        executor.submit(jobs[name])
    while jobs["cancelled"].status.state.name != "ACTIVE":
        time.sleep(0.1)
    jobs["cancelled"].cancel()
    found = {}
    for name, job in jobs.items():
        status = job.wait(WAIT)
        assert status is not None, f"{name} is not over"
        found[name] = [status.state.name, status.exit_code, status.message, job.native_id]
    return found


if __name__ == "__main__":
    document = main()
    print("\n" + json.dumps(document), flush=True)
    os._exit(0)  # PSI/J's threads stay
