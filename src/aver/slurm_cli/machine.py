"""This machine as Slurm's commands show it: one node, in one partition."""

from __future__ import annotations

import os
import time

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import PARTITION
from aver.slurm_cli.facts import Book, node_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aver.slurm_cli.facts import JobFacts


class Node:
    """What it has, and what the jobs on it use. Asks the settings and the kernel when it is made."""

    def __init__(self, jobs: Iterable[JobFacts]) -> None:
        from aver.config import load_config
        from aver.engines.local.capabilities import gpus, memory_bytes
        from aver.engines.local.cpu_sets import own_cpus

        config = load_config()
        active = [job for job in jobs if job.is_active]
        self.name = node_name()
        self.host = os.uname().nodename
        self.partition = PARTITION
        self.cpus = config.cpus or len(own_cpus())
        self.mem_mib = (config.mem_bytes or memory_bytes()) >> 20
        self.gpus = len(gpus()) if config.gpus is None else config.gpus
        self.used_cpus = sum(job.cpus for job in active)
        self.used_mem_mib = sum(job.mem_mib for job in active)
        self.used_gpus = sum(job.gpus for job in active)
        self.kill_wait_s = config.kill_wait_s

    @classmethod
    def of(cls, book: Book) -> Node:
        return cls(book.unsettled())

    @property
    def state(self) -> str:
        if not self.used_cpus:
            return "idle"
        return "allocated" if self.used_cpus >= self.cpus else "mixed"

    @property
    def short_state(self) -> str:
        return {"idle": "idle", "allocated": "alloc", "mixed": "mix"}[self.state]

    @property
    def free_cpus(self) -> int:
        return max(0, self.cpus - self.used_cpus)

    @property
    def gres(self) -> str:
        return f"gpu:{self.gpus}" if self.gpus else "(null)"

    @property
    def load(self) -> str:
        return f"{os.getloadavg()[0]:.2f}"

    @property
    def free_mem_mib(self) -> int:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20

    @property
    def booted_at(self) -> float:
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class Line:
    """The partition with the node, or without it where the node is not asked for."""

    def __init__(self, node: Node, *, has_node: bool = True) -> None:
        self.node = node
        self.has_node = has_node

    def count(self, state: str) -> int:
        """1 where the node is in use (`allocated`), free (`idle`) or there at all (`all`)."""
        is_idle = self.node.state == "idle"
        return int(self.has_node and (state == "all" or (state == "idle") == is_idle))
