"""The trace that recorder.c writes: every change below one folder, in the order in which it happened. Pure."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The letter of a record."""

    CREATE = "C"
    SOCKET = "S"
    MKDIR = "D"
    WRITE = "W"
    TRUNCATE = "T"
    SYNC = "F"
    MODE = "P"
    RENAME = "R"
    LINK = "L"
    UNLINK = "U"
    MARK = "M"  # by the workload: what somebody was shown, as JSON


@dataclass(frozen=True, slots=True)
class Op:
    """One change. `number`: offset of a write, size of a truncation, mode. Paths are relative to the root."""

    kind: Kind
    inode: int = 0
    number: int = 0
    path: str = ""
    other: str = ""
    data: bytes = b""

    @property
    def mark(self) -> dict[str, object]:
        found = json.loads(self.data)
        assert isinstance(found, dict)
        return found


def parse(data: bytes, root: str) -> list[Op]:
    """The trace of what happened below `root`; ValueError if it is no trace."""
    ops: list[Op] = []
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        letter, inode, number, *sizes = data[at:end].split(b" ")
        parts: list[bytes] = []
        at = end + 1
        for size in map(int, sizes):
            parts.append(data[at : at + size])
            at += size
        if at > len(data):
            raise ValueError("the trace ends in the middle of a record")
        paths = [os.path.relpath(os.fsdecode(part), root) if part else "" for part in parts[:2]]
        ops.append(Op(Kind(letter.decode()), int(inode), int(number), paths[0], paths[1], parts[2]))
    return ops


def record_of_mark(mark: dict[str, object]) -> bytes:
    """A record of the workload's own."""
    data = json.dumps(mark).encode()
    return b"M 0 0 0 0 %d\n" % len(data) + data
