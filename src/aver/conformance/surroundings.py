"""What this machine, or this Slurm, does not have, so that cases that need it are skipped, visibly."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from aver.conformance.commands import Commands
from aver.errors import UnreachableError


def what_it_lacks(commands: Commands) -> dict[str, str]:
    """The needs of cases that are not met, each with the reason."""
    lacks: dict[str, str] = {}
    if commands.name != "slurm":
        if not _kernel_limits_memory(commands):
            lacks["memory"] = "no cgroup is writable: nobody can tell that memory ran out"
        return {
            **lacks,
            "operator": "one machine has no operator that takes nodes away",
            "nodes": "one machine is one node",
            "partitions": "one machine has no partitions that preempt each other",
        }
    settings = commands.run(["scontrol", "show", "config"], Path("/")).out
    if "cgroup" not in "".join(re.findall(r"^TaskPlugin\s*=\s*(.*)$", settings, re.MULTILINE)):
        lacks["memory"] = "this Slurm does not enforce memory limits: cgroups are not writable"
    partitions = commands.run(["sinfo", "-h", "-a", "-o", "%R"], Path("/")).out.split()
    if not {"low", "high", "requeue", "fragile", "narrow"} <= set(partitions):
        lacks["partitions"] = "this Slurm has not the lab's partitions"
        lacks["operator"] = "this Slurm has no node to spare"
    if os.geteuid() != 0:
        lacks["operator"] = "only root can act as the operator"
    return lacks


def _kernel_limits_memory(commands: Commands) -> bool:
    """Whether `aver doctor` finds a cgroup in which the kernel holds jobs to their memory."""
    done = commands.run([sys.executable, "-m", "aver", "doctor", "--json"], Path.cwd())
    try:
        checks = json.loads(done.out)["checks"]
    except (ValueError, KeyError):
        raise UnreachableError(
            f"conformance: aver doctor: {(done.err.strip().splitlines() or ['failed'])[-1]}"
        ) from None
    return any(one["name"] == "memory limit" and one["fact"].startswith("by the kernel") for one in checks)
