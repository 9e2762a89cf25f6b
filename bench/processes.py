"""What the kernel says about processes: memory, processor time, the file behind a descriptor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def wait_for(predicate: Callable[[], bool], deadline_s: float, what: str) -> None:
    end = time.monotonic() + deadline_s
    while not predicate():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {deadline_s:g} s")
        time.sleep(0.05)


def proportional_bytes(pid: int) -> int:
    """Pss: private memory, and its share of what is shared."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no Pss")


def peak_bytes(pid: int) -> int:
    """The largest resident size so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no VmHWM")


def cpu_seconds(pid: int) -> float:
    """Processor time of the process itself: the scheduler counts it in ns, /proc/PID/stat in ticks of 10 ms."""
    try:
        times = [(task / "schedstat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int(text.split()[0]) for text in times) / 1e9
    except FileNotFoundError:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS_PER_S


def children_of(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def witnesses_of(home: Path) -> list[int]:
    """The slot witnesses of a home: their descriptor 4 is a journal in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                journal = os.readlink(entry / "fd" / "4")
                program = os.readlink(entry / "exe")
            except OSError:
                continue
            if journal.startswith(f"{home}/witness/") and "aver-witness" in program:
                found.append(int(entry.name))
    return found
