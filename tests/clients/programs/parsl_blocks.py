"""A user's program with Parsl: apps in a block that SlurmProvider asks for. Prints what Parsl says, as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any

import parsl
from parsl.app.app import bash_app, python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher, SrunLauncher
from parsl.launchers.base import Launcher
from parsl.providers import SlurmProvider


@python_app
def double(number: int) -> tuple[int, str]:
    import os

    return 2 * number, os.environ["SLURM_JOB_ID"]


@python_app
def refuse() -> None:
    raise ValueError("not this one")


@bash_app
def leave(stdout: str) -> str:
    return "echo a line of the app; exit 3"


def provider(launcher: Launcher) -> SlurmProvider:
    return SlurmProvider(
        nodes_per_block=1, cores_per_node=1, mem_per_node=1, init_blocks=1, max_blocks=1, walltime="00:05:00",
        exclusive=False, launcher=launcher,
    )  # fmt: skip


def error_of(future: Any) -> str:
    error = future.exception()
    return f"{type(error).__name__}: {error}"


def block_state(name: str, command: str) -> str:
    """What Parsl calls a block when it is over. Each has a provider of its own: Parsl forgets how others ended."""
    own = provider(SimpleLauncher())
    own.script_dir = "scripts"
    job = own.submit(command, 1, name)
    while not (status := own.status([job])[0]).terminal:
        if name == "cancelled" and status.status_name == "RUNNING":
            subprocess.run(["scancel", job], check=True)
        time.sleep(0.1)
    return str(status.status_name)


def block_states() -> dict[str, str]:
    found = {"good": block_state("good", "true"), "bad": block_state("bad", "exit 5")}
    found["hungry"] = block_state("hungry", "python3 -c 'import time; kept = bytearray(1500 << 20); time.sleep(30)'")
    return {**found, "cancelled": block_state("cancelled", "sleep 60")}


def main() -> dict[str, Any]:
    executor = HighThroughputExecutor(
        label="block", address="127.0.0.1", max_workers_per_node=1, provider=provider(SrunLauncher()), encrypted=False,
        poll_period=10, heartbeat_period=2,
    )  # fmt: skip
    parsl.load(Config(executors=[executor], strategy="none", run_dir="runs"))
    value, job = double(21).result()
    found = {"value": value, "job": job, "python": error_of(refuse()), "bash": error_of(leave(stdout="leave.txt"))}
    found["blocks"] = [status.status_name for status in executor.status().values()]
    parsl.dfk().cleanup()
    return found


if __name__ == "__main__":
    os.makedirs("scripts", exist_ok=True)
    document = main()
    document["states"] = block_states()
    print("\n" + json.dumps(document))
