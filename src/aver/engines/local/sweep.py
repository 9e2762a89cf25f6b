"""End what a job left behind when its witness was killed.

A process belongs to the job if it is in the attempt's cgroup, carries the attempt's mark, has the attempt's key in
its environment, is in the session that the witness made for it, or descends from one that does.
Repeated until two looks in a row find nothing, so that a process that forks meanwhile does not get away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from aver.engines.local.capabilities import CgroupBase
from aver.engines.local.mark import carries, mark_of, own_mark

DEADLINE_S = 10.0
PAUSE_S = 0.01
START_TOLERANCE_S = 2.5  # the kernel gives the time of its boot in whole seconds


def sweep(key: str, session: int | None, cgroup: CgroupBase | None, adopted: bool, spared: set[int]) -> int:
    """Kill every process of the attempt; return how many were killed.

    With `adopted`, children of our own count too: a killed witness's orphans come to us. Those that are `spared`, and
    those that carry our own mark, were started by us.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + DEADLINE_S
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline:
        found = _find(key, session, cgroup, adopted, spared)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap(found)
        killed |= found
        quiet = 0 if found else quiet + 1
        if found:
            time.sleep(PAUSE_S)
    _remove_cgroup(key, cgroup)
    return len(killed)


def is_same_process(pid: int, started_at: float) -> bool:
    """Whether this process is the one that started then, and not a later one with its number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/stat", "rb") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    except (OSError, IndexError, ValueError, StopIteration):
        return False
    return abs(boot + ticks / os.sysconf("SC_CLK_TCK") - started_at) < START_TOLERANCE_S


def _find(key: str, session: int | None, cgroup: CgroupBase | None, adopted: bool, spared: set[int]) -> set[int]:
    needle = b"AVER_KEY=" + key.encode() + b"\0"
    mark, own = mark_of(key), own_mark()
    me = os.getpid()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        state = _stat(pid)
        if state is None:
            continue
        parent, own_session = state
        parents[pid] = parent
        if pid == me or pid in spared:
            continue
        is_orphan = adopted and parent == me and (own is None or not carries(pid, own))
        is_near = (session is not None and own_session == session) or is_orphan
        if is_near or carries(pid, mark) or needle in _environ(pid):
            found.add(pid)
    if cgroup is not None:
        found |= _members(os.path.join(cgroup.folder, key))
    found -= spared | {me}
    grew = True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in found and pid not in found} - spared - {me}
        found |= more
        grew = bool(more)
    return found


def _stat(pid: int) -> tuple[int, int] | None:
    """Parent and session of a live process; None if it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return None
        return int(fields[1]), int(fields[3])
    except (OSError, IndexError, ValueError):
        return None


def _environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read() + b"\0"
    except OSError:
        return b""


def _members(folder: str) -> set[int]:
    try:
        with open(os.path.join(folder, "cgroup.procs")) as file:
            return {int(line) for line in file}
    except (OSError, ValueError):
        return set()


def _reap(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.waitpid(pid, os.WNOHANG)


def _remove_cgroup(key: str, cgroup: CgroupBase | None) -> None:
    if cgroup is None:
        return
    for _ in range(50):
        try:
            os.rmdir(os.path.join(cgroup.folder, key))
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(PAUSE_S)
        else:
            return
