"""What running scripts and tasks use at this moment, from /proc: processor time and memory of all their processes.

A process belongs to the attempt or task whose key is in its environment, or in that of the nearest ancestor that has
one. What can't be read is left out: a key without processes has no entry, and its use is unknown. So is that of a job
in docker, whose processes are children of a daemon: those that are found are docker's client.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from aver.model.job import CONTAINER, DOCKER
from aver.model.record import Record
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow

_MARK = b"\0AVER_KEY="
_ELSEWHERE = f"\0{CONTAINER}={DOCKER}\0".encode()
_KIB = 1024
TICKS = os.sysconf("SC_CLK_TCK")
_ANONYMOUS, _SHARED = b"RssAnon:", b"RssShmem:"


class Use:
    """Of one script or task, together. `is_elsewhere`: these processes only wait for those of the job."""

    def __init__(self, is_elsewhere: bool) -> None:
        self.is_elsewhere = is_elsewhere
        self.cpu_s = 0.0
        self.memory_bytes = 0
        self.pids: list[int] = []


class _Known(Record):
    """A process: when it began, its key ("" without one), and whether it was asked twice."""

    began: bytes
    key: str
    is_elsewhere: bool
    is_old: bool


class UseNow(Record):
    """What a running job uses, beside what it asked for. `cpus_now` None: not measured twice yet."""

    cpus_now: float | None
    cpus: int | float
    memory_now_bytes: int
    mem_bytes: int | None


class Meter:
    """Measures running jobs of this machine again and again: CPUs in use are the difference to the time before."""

    def __init__(self) -> None:
        self._scan = Scan()
        self._cpu: dict[str, tuple[float, float]] = {}  # by key: when, and CPU seconds until then

    def measure(self, reader: Reader, rows: Sequence[JobRow], now: float) -> dict[int, UseNow]:
        """By job; jobs without processes here are left out."""
        if not rows:
            return {}
        uses = of_attempts(self._scan.use())
        seen: dict[str, tuple[float, float]] = {}
        found = {}
        for row in rows:
            attempts = reader.attempts(row.id)
            if not attempts:
                continue
            newest = attempts[-1]
            if newest.key not in uses:
                continue
            cpu_s, memory = uses[newest.key]
            seen[newest.key] = (now, cpu_s)
            before = self._cpu.get(newest.key)
            cpus = None
            if before is not None and now > before[0]:
                cpus = max(0.0, cpu_s - before[1]) / (now - before[0])
            found[row.id] = UseNow(cpus, newest.request.cpus, memory, newest.request.mem_bytes)
        self._cpu = seen
        return found


class Scan:
    """Looks at all processes again and again. Whose a process is, is not read each time: an environment can be large.

    A process without a key is asked twice: the first time it may have been about to start its program.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}  # by pid

    def use(self) -> dict[str, Use]:
        """The use of each key that has processes."""
        known: dict[int, _Known] = {}
        parents: dict[int, int] = {}
        cpu: dict[int, float] = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            pid = int(name)
            fields = _stat(pid)
            if fields is None:
                continue
            parents[pid] = int(fields[1])
            cpu[pid] = sum(int(one) for one in fields[11:15]) / TICKS
            known[pid] = self._whose(pid, fields[19])
        self._known = known
        own = {pid: one for pid, one in known.items() if one.key}
        found: dict[str, Use] = {}
        for pid in parents:
            nearest = _nearest(pid, own, parents)
            if nearest is not None:
                use = found.setdefault(nearest.key, Use(nearest.is_elsewhere))
                use.cpu_s += cpu[pid]
                use.memory_bytes += _memory(pid)
                use.pids.append(pid)
        return found

    def _whose(self, pid: int, began: bytes) -> _Known:
        before = self._known.get(pid)
        if before is None or before.began != began:
            return _Known(began, *_key(pid), False)
        return before if before.key or before.is_old else _Known(began, *_key(pid), True)


def of_attempts(uses: dict[str, Use]) -> dict[str, tuple[float, int]]:
    """CPU seconds and memory by the attempt's key: of its script and of all its tasks together."""
    found: dict[str, tuple[float, int]] = {}
    for key, use in measured(uses).items():
        attempt = key.partition(".s")[0]
        cpu_s, memory = found.get(attempt, (0.0, 0))
        found[attempt] = (cpu_s + use.cpu_s, memory + use.memory_bytes)
    return found


def measured(uses: dict[str, Use]) -> dict[str, Use]:
    """Those whose processes are the job's own."""
    return {key: use for key, use in uses.items() if not use.is_elsewhere}


def live_use() -> dict[str, Use]:
    """The processes of each key, at this moment."""
    return Scan().use()


def _nearest(pid: int, own: dict[int, _Known], parents: dict[int, int]) -> _Known | None:
    seen = 0
    while pid in parents and seen < len(parents):
        if pid in own:
            return own[pid]
        pid, seen = parents[pid], seen + 1
    return None


def _stat(pid: int) -> list[bytes] | None:
    """The fields behind the name; None if it is gone or a zombie."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return fields if len(fields) > 19 and fields[0] not in (b"Z", b"X") else None


def _key(pid: int) -> tuple[str, bool]:
    """The key, and whether a daemon runs the job."""
    environment = b"\0" + _read(pid, "environ")
    rest = environment.partition(_MARK)[2]
    return rest.partition(b"\0")[0].decode("ascii", "replace"), _ELSEWHERE in environment


def _memory(pid: int) -> int:
    total = 0
    for line in _read(pid, "status").splitlines():
        if line.startswith((_ANONYMOUS, _SHARED)):
            total += int(line.split()[1]) * _KIB
    return total


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
