"""Runs in allocations, as tests drive them: submit, find the executor, wait for what is shown."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from fault_desk import ClusterHome

from aver.model.codec import encode
from aver.model.job import Allocation, FlowSpec, JobSpec
from aver.model.record import replace
from live_home import is_alive, wait_for

SMALL = ("-N1", "-n1", "-c2", "--mem=600", "-t20")  # two jobs of one cpu at a time
WIDE = ("-N4", "--ntasks-per-node=1", "-c4", "--mem=800", "-t20")


def submit_in(
    home: ClusterHome, jobs: Sequence[JobSpec], words: Sequence[str], count: int = 1, headroom_s: int = 120
) -> int:
    """Submit a flow whose jobs are steps of so many allocations."""
    plain = home.submission(FlowSpec("flow", tuple(jobs)))
    wish = Allocation(tuple(words), count, headroom_s)
    with home.client() as client:
        whole = encode(replace(plain, engine="allocation", allocation=wish))
        reply = client.call("submit", submission=whole, env=home.environment())
    return int(reply["run"])


def folder_of(home: ClusterHome, run: int) -> Path:
    return home.home.path / "slurm" / "alloc" / str(run)


def allocation_ids(home: ClusterHome, run: int) -> list[int]:
    """Of the run's allocations that sbatch took, in order."""
    found = []
    for path in sorted((folder_of(home, run) / "asks").glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            found += [one["id"] for one in json.loads(path.read_bytes())["allocations"] if one["id"] is not None]
    return found


def wait_begun(home: ClusterHome, run: int, place: int = 0) -> int:
    """Wait until the executor of this allocation has begun; its id."""

    def begun() -> int | None:
        ids = allocation_ids(home, run)
        there = len(ids) > place and (folder_of(home, run) / "allocs" / str(ids[place])).exists()
        return ids[place] if there else None

    found = wait_for(begun, f"the executor of allocation {place} begins", 120)
    assert found is not None
    return found


def kill_executor(home: ClusterHome, number: int) -> None:
    """Kill the batch script of an allocation, as nothing else does."""
    wanted = f"/job{number:05d}/slurm_script".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            pid, words = int(path.parent.name), path.read_bytes().split(b"\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if any(word.endswith(wanted) for word in words) and b"slurmstepd" in _name(parent):
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda pid=pid: not is_alive(pid), "the executor's end")
                return
    raise AssertionError(f"allocation {number} has no executor here")


def _name(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def reasons_of(home: ClusterHome, run: int) -> dict[str, str]:
    with home.reader() as reader:
        return {job.name: job.reason for job in reader.jobs(run=run)}
