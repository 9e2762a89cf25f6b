"""End what a job left behind when its witness was killed.

A process belongs to the job if it is in the attempt's cgroup, carries the attempt's mark, has the attempt's key in
its environment, is in the session that the witness made for it, or descends from one that does.
Repeated until two looks in a row find nothing, so that a process that forks meanwhile does not get away.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time

from aver.engines.api import Heard
from aver.engines.local.job_cgroup import members
from aver.engines.local.mark import is_coordinators, mark_of, mark_on
from aver.engines.local.process import send_signal, start_of
from aver.model.evidence import WitnessVanished
from aver.model.record import Record

DEADLINE_S = 10.0
PAUSE_S = 0.01
START_TOLERANCE_S = 2.5  # the kernel gives the time of its boot in whole seconds


class Swept(Record):
    killed: int
    stays: int  # processes of the attempt that could not be ended
    oomd_kills: int = 0  # processes that systemd-oomd had killed before


def sweep(key: str, session: int | None, cgroups: list[str], adopted: bool, spared: set[int]) -> Swept:
    """Kill every process of the attempt.

    With `adopted`, children of our own count too: a killed witness's orphans come to us. Never those that are `spared`,
    nor a coordinator, a witness or what else carries a coordinator's mark: such a one may have been started in the job.
    """
    killed: set[int] = set()
    refused: set[int] = set()  # another user's: it will not be different the next time
    deadline = time.monotonic() + DEADLINE_S
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline:
        starts = _find(key, session, cgroups, adopted, spared)
        found = starts.keys() - refused
        refused |= _kill({pid: starts[pid] for pid in found})
        _reap(found)
        killed |= found
        quiet = 0 if found - refused else quiet + 1
        if found:
            time.sleep(PAUSE_S)
    stays = set(_find(key, session, cgroups, adopted, spared)) if refused or quiet < 2 else set()
    return Swept(len(killed - stays), len(stays))


def heard_of_loss(key: str, witness: int | None, swept: Swept | None) -> Heard:
    """What there is to hear of an attempt whose end nobody saw. Without `swept` its witness said it unreadably."""
    found = swept or Swept(0, 0)
    vanished = WitnessVanished(time.time(), witness, found.killed, found.stays, found.oomd_kills, swept is None)
    what = "unreadable" if swept is None else "vanished"
    facts = {what: witness, "swept": found.killed, "stays": found.stays, "oomd": found.oomd_kills}
    return Heard(key, "coordinator", json.dumps(facts), vanished)


def _kill(starts: dict[int, int]) -> set[int]:
    """Kill the processes that started then; return those that may not be killed."""
    refused: set[int] = set()
    for pid, start in starts.items():
        try:
            send_signal(pid, signal.SIGKILL, lambda pid=pid, start=start: start_of(pid) == start)  # type: ignore[misc]
        except PermissionError:
            refused.add(pid)
    return refused


def end_once(key: str, session: int | None, cgroups: list[str], spared: set[int]) -> None:
    """Kill every process of the attempt that is there now; what it forks meanwhile is found the next time."""
    _kill(_find(key, session, cgroups, False, spared))


def is_same_process(pid: int, started_at: float) -> bool:
    """Whether this process is the one that started then, and not a later one with its number."""
    ticks = start_of(pid)
    try:
        with open("/proc/stat", "rb") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    except (OSError, IndexError, ValueError, StopIteration):
        return False
    return ticks is not None and abs(boot + ticks / os.sysconf("SC_CLK_TCK") - started_at) < START_TOLERANCE_S


def _find(key: str, session: int | None, cgroups: list[str], adopted: bool, spared: set[int]) -> dict[int, int]:
    """The processes of the attempt, each with its start."""
    needle = b"AVER_KEY=" + key.encode() + b"\0"
    mark, me = mark_of(key), os.getpid()
    parents: dict[int, int] = {}
    starts: dict[int, int] = {}
    found: set[int] = set()
    apart = spared | {me}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        state = _stat(pid)
        if state is None:
            continue
        parent, own_session, starts[pid] = state
        parents[pid] = parent
        carried = mark_on(pid)
        if is_coordinators(carried):
            apart.add(pid)
        is_near = (session is not None and own_session == session) or (adopted and parent == me)
        if is_near or carried == mark or needle in _environ(pid):
            found.add(pid)
    found = (found | members(cgroups)) - apart
    grew = True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in found and pid not in found} - apart
        found |= more
        grew = bool(more)
    return {pid: starts[pid] for pid in found if pid in starts}  # one that came since is found the next time


def _stat(pid: int) -> tuple[int, int, int] | None:
    """Parent, session and start of a live process; None if it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return None
        return int(fields[1]), int(fields[3]), int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read() + b"\0"
    except OSError:
        return b""


def _reap(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.waitpid(pid, os.WNOHANG)
