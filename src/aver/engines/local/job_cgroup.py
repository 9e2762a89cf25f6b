"""The memory cgroups of jobs: their names, who is in them, and their removal. The design is `docs/design/witness.md`.

A job with a limit of memory or processes has an outer cgroup, which has the limit, and in it `script`, and `sN/tM` for
each task of its steps. Its witness names the outer one, `HOME.wNUMBER-PLACE-jCOUNT`, and gives it to the next such job
if nothing is left in it. A job without a limit shares the cgroup in which its witness lives, `HOME.wNUMBER-PLACE`, with
nobody else; tasks of it that have a limit of their own are in `KEY/sN/tM`.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from pathlib import Path

from aver.engines.api import Order

SCRIPT = "script"
WITNESS_NAMES = "*"  # instead of a name
PAUSE_S = 0.01
OOMD_MARKS = ("user.oomd_ooms", "user.oomd_kill")  # how often, written before it kills; how many, after that
_TOP = re.compile(
    r"[0-9a-f]{8}\.([0-9]+\.[0-9]+\.[0-9a-f]{8}(-[0-9a-f]{8})?(\.s[0-9]+\.t[0-9]+)?|w[0-9]+-[0-9a-f]{8}(-j[0-9]+)?)"
)  # a job's or a witness's
_TASK = re.compile(r"(.+)\.(s[0-9]+)\.(t[0-9]+)")


def levels(order: Order, counts_processes: bool = False, of_job: str = "") -> list[tuple[int, str]]:
    """The cgroups that the order is to run in, from outside, each with its limit of memory (0: none).

    None without such a limit, unless its processes are to be counted. `of_job`: the outer one of a task's job, if it
    has one.
    """
    mem_bytes = 0 if order.is_srun else order.request.mem_bytes or 0
    if not mem_bytes and not counts_processes:
        return []
    task = _TASK.fullmatch(order.key)
    if task is None:
        return [(mem_bytes, WITNESS_NAMES), (0, SCRIPT)]
    job_bytes = order.job_mem_bytes or 0
    step_bytes = 0 if mem_bytes == job_bytes else mem_bytes
    return [(job_bytes, of_job or task[1]), (step_bytes, task[2]), (0, task[3])]


def job_of_task(key: str) -> str | None:
    """The key of the attempt that this task's key belongs to; None if it is no task's."""
    task = _TASK.fullmatch(key) if ".s" in key else None
    return None if task is None else task[1]


def place_of(home: Path) -> str:
    """What tells this home from its copies, which have the same keys; the same after a restart."""
    known = os.stat(home)
    return hashlib.blake2b(f"{known.st_dev} {known.st_ino}".encode(), digest_size=4).hexdigest()


def witness_name(key: str, number: int, place: str) -> str:
    """The cgroup of the witness in this slot, to which it gets with its first order."""
    return f"{key.partition('.')[0]}.w{number}-{place}"


def occupied(base: str, place: str) -> dict[int, list[str]]:
    """The cgroups of witnesses that are there, by their slot: of those that live, and of some who left a process in it
    that could not be ended."""
    name = re.compile(rf"[0-9a-f]{{8}}\.w([0-9]+)-{place}(-warm|-j[0-9]+)?")
    found: dict[int, list[str]] = {}
    for one in _names(base):
        if match := name.fullmatch(one):
            found.setdefault(int(match[1]), []).append(os.path.join(base, one))
    return found


def top_of(folder: str) -> str | None:
    """The outermost cgroup of a job or a witness that the folder is in, itself included; None if it is in none."""
    found = None
    while os.path.basename(folder):
        if _TOP.fullmatch(os.path.basename(folder)):
            found = folder
        folder = os.path.dirname(folder)
    return found


def members(folders: list[str]) -> set[int]:
    """The processes in these cgroups and in those inside them."""
    found: set[int] = set()
    for folder in folders:
        for inner, _, _ in os.walk(folder):
            try:
                with open(os.path.join(inner, "cgroup.procs")) as file:
                    found.update(int(line) for line in file)
            except (OSError, ValueError):
                continue
    return found


def folders_of(base: str, key: str, of_witness: str, outer: str | None) -> list[str]:
    """Where processes of an attempt or a task may be, whose witness was in that cgroup.

    `outer` is the outermost of its own, empty: it has none; None: the witness did not say.
    """
    task = _TASK.fullmatch(key)
    inner = (SCRIPT,) if task is None else task.groups()[1:]
    if outer is None and task is None:
        outers = [name for name in _names(base) if name.startswith(f"{of_witness}-j")]
    else:
        outers = [outer or (key if task is None else task[1])]
    return [*(os.path.join(base, one, *inner) for one in outers), os.path.join(base, of_witness)]


def _names(base: str) -> list[str]:
    try:
        return os.listdir(base)
    except OSError:
        return []


def oomd_kills(folders: list[str]) -> int:
    """How many processes in these cgroups systemd-oomd says that it killed: no counter of the kernel's has them."""
    return sum(max(_number(folder, mark) for mark in OOMD_MARKS) for folder in folders)


def _number(folder: str, mark: str) -> int:
    try:
        return int(os.getxattr(folder, mark))
    except (OSError, ValueError):
        return 0


def remove(base: str, folders: list[str], wait_s: float) -> None:
    """Remove these, what is inside them, and what is above them below the base if nobody else is in it."""
    for folder in folders:
        deadline = time.monotonic() + wait_s
        for inner, _, _ in os.walk(folder, topdown=False):
            while not _is_removed(inner) and time.monotonic() < deadline:
                time.sleep(PAUSE_S)
        while (folder := os.path.dirname(folder)) != base and folder.startswith(base):
            _is_removed(folder)


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
