"""Which witnesses live, whatever became of their files: found by what the processes have open.

A witness has its listening socket as descriptor 3, its journal to append to as 4, and its socket's file as 5, by which
it can be reached when that file has lost its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

SOCKET_FD, JOURNAL_FD, SOCKET_FILE_FD = 3, 4, 5
_DELETED = " (deleted)"


def living_witnesses(folder: Path) -> dict[int, int]:
    """The pids of witnesses whose journals are, or were, in this folder, by the number of their slot."""
    base = os.path.realpath(folder)
    found: dict[int, set[int]] = {}
    for pid, where, number in _witnesses():
        if where == base:
            found.setdefault(number, set()).add(pid)
    return {number: _parent(pids) for number, pids in found.items()}


def runs_elsewhere(key: str, folder: Path) -> bool:
    """Whether a living witness of another folder was given this attempt: then this home is a copy of that one's, or
    was moved, and the attempt is in good hands."""
    base, needle = os.path.realpath(folder), f'"key":"{key}"'.encode()
    return any(where != base and needle in _journal(pid) for pid, where, _ in _witnesses())


def is_witness_of(pid: int, number: int, folder: Path) -> bool:
    """Whether this process is the witness of this slot."""
    return _slot_of(str(pid)) == (os.path.realpath(folder), number)


def _witnesses() -> Iterator[tuple[int, str, int]]:
    """The living witnesses of this user: pid, folder and slot."""
    for name in os.listdir("/proc"):
        slot = _slot_of(name) if name.isdigit() else None
        if slot is not None:
            yield int(name), *slot


def _slot_of(pid: str) -> tuple[str, int] | None:
    """The folder and number of the witness's slot; None if it is none."""
    try:
        journal = os.readlink(f"/proc/{pid}/fd/{JOURNAL_FD}").removesuffix(_DELETED)
        where, name = os.path.split(journal)
        stem, suffix = os.path.splitext(name)
        if suffix != ".log" or not stem.isdecimal() or not _appends(pid):
            return None
        return (where, int(stem)) if os.readlink(f"/proc/{pid}/fd/{SOCKET_FD}").startswith("socket:") else None
    except (OSError, ValueError):
        return None


def _journal(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/fd/{JOURNAL_FD}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _appends(pid: str) -> bool:
    """Whether the process writes the journal: one that only reads it is not a witness."""
    with open(f"/proc/{pid}/fdinfo/{JOURNAL_FD}") as file:
        flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
    return flags & os.O_APPEND != 0 and flags & os.O_ACCMODE == os.O_WRONLY


def _parent(pids: set[int]) -> int:
    """The one of several that is not a child of another: a job is forked with all descriptors, and closes them."""
    return min(pids, key=lambda pid: (_ppid(pid) in pids, pid))


def _ppid(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
