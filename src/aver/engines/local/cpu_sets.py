"""Which CPUs each job on this machine runs on: sets that share none, from one NUMA node where that has enough.

A job that asks for a whole number of CPUs gets a set of its own. Jobs with fractions, or 0, run where the coordinator
may. What a witness began with is in its journal, so that a coordinator that comes back knows the sets in use.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

MACHINE_CPUS = "AVER_MACHINE_CPUS"  # of a job: the CPUs that its coordinator may hand out
NODES = Path("/sys/devices/system/node")
MOST = 1024  # numbers that a witness's mask has


def own_cpus(environment: Mapping[str, str] = os.environ) -> tuple[int, ...]:
    """The CPUs that a coordinator may hand out: those of this process; inside a job, those of the job's coordinator."""
    with contextlib.suppress(ValueError):
        if found := parse_cpu_list(environment.get(MACHINE_CPUS, "")):
            return found
    return tuple(sorted(os.sched_getaffinity(0)))


def leave_job_cpus() -> None:
    """Started inside a job, run where the job's coordinator may: the job's CPUs are not ours."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, own_cpus())
    os.environ.pop(MACHINE_CPUS, None)


@lru_cache(maxsize=256)
def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The numbers of `0-3,8`, as the kernel writes them; ValueError if that is not a list."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return tuple(sorted(found))


def cpu_list(cpus: Iterable[int]) -> str:
    """`0-3,8` of these numbers."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


_list_of = lru_cache(maxsize=256)(cpu_list)


def numa_nodes(cpus: Iterable[int], folder: Path = NODES) -> list[list[int]]:
    """The CPUs by NUMA node; one list where the kernel names no nodes."""
    left = set(cpus)
    nodes = []
    for path in sorted(folder.glob("node[0-9]*/cpulist")):
        try:
            of_node = left.intersection(parse_cpu_list(path.read_text()))
        except (OSError, ValueError):
            continue
        left -= of_node
        if of_node:
            nodes.append(sorted(of_node))
    return [*nodes, sorted(left)] if left else nodes


class CpuSets:
    """The free CPUs by node, and who has the others."""

    def __init__(self, nodes: list[list[int]]) -> None:
        self.all = cpu_list(cpu for node in nodes for cpu in node)
        self._free = nodes
        self._node_of = {cpu: node for node in nodes for cpu in node}
        self._held: dict[str, tuple[int, ...]] = {}

    def take(self, key: str, count: int) -> str:
        """Give the attempt this number of CPUs, and return them as a list; "" if there are not enough."""
        fitting = [node for node in self._free if len(node) >= count]
        if fitting:
            node = min(fitting, key=len) if len(fitting) > 1 else fitting[0]
            found = node[:count]
        else:
            largest_first = sorted(self._free, key=len, reverse=True)
            found = [cpu for node in largest_first for cpu in node][:count]
        if len(found) < count:
            return ""
        return self.hold(key, found)

    def hold(self, key: str, cpus: Iterable[int]) -> str:
        """The attempt has these; what another one has already stays that one's."""
        held = tuple(cpu for cpu in cpus if cpu in self._node_of and cpu in self._node_of[cpu])
        for cpu in held:
            self._node_of[cpu].remove(cpu)
        self._held[key] = held
        return _list_of(held)

    def of(self, key: str) -> str:
        """The CPUs that the attempt has; "" without any of its own."""
        return _list_of(self._held.get(key, ()))

    def release(self, key: str) -> None:
        for cpu in self._held.pop(key, ()):
            node = self._node_of[cpu]
            node.append(cpu)
            node.sort()


def cpu_sets(total: int) -> CpuSets | None:
    """Sets of the CPUs that this process may use; None where `total`, which jobs may have together, is more."""
    cpus = sorted(os.sched_getaffinity(0))
    return CpuSets(numa_nodes(cpus)) if total <= len(cpus) and cpus[-1] < MOST else None
