"""The exit records that witnesses leave on the shared folder, one file per attempt.

A file's absence says nothing: it may be late, or the folder may not be shared. A file that can't be read, is cut
short or is of another attempt says nothing either; it is looked at again when it changes.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from aver.judge.witness_record import parse_line
from aver.model.evidence import WitnessRecord

LARGEST_RECORD_BYTES = 1 << 20
Found = tuple[str, str, str, WitnessRecord]  # name, task (`.s0.t3`; empty: the script), verbatim text, record
_NAME = re.compile(r"(?P<attempt>.+\.r[0-9]+)(?P<task>\.s[0-9]+\.t[0-9]+)?")


class RecordsFolder(Protocol):
    """What witnesses leave: `Records` in a folder of this machine, `remote.RemoteRecords` elsewhere."""

    trouble: str  # why the last `new` could not ask at all; empty: it could

    def new(self, names: Collection[str]) -> Iterable[Found]:
        """Those of these attempts (KEY.rN) that were not given before: name, task, text, record."""

    def remove(self, keys: Collection[str]) -> None:
        """Remove records that are not needed any more."""


def in_order(records: RecordsFolder, names: Collection[str]) -> list[Found]:
    """What is new, tasks as they ended and then scripts.

    The records of its tasks are older than a script's own, and a listing that was under way may lack them: where a
    script's is found it is looked once more.
    """
    found = list(records.new(names))
    if any(not task for _, task, _, _ in found):
        found += records.new(names)
    return sorted(found, key=lambda one: (one[1] == "", one[3].started_at + one[3].elapsed_s))


class Records:
    """The folder: KEY.rN is the record of an attempt's N-th start by Slurm, KEY.rN.sS.tT that of a task."""

    trouble = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, tuple[int, int]] = {}  # name: size and time when it was read last

    def new(self, names: Collection[str]) -> Iterator[Found]:
        """Those of these attempts (KEY.rN) that were not given before: name, task (`.s0.t3`; empty: the script), …"""
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return
        for entry in entries:
            name = record_name(entry.name)
            if name is None or name[0] not in names:
                continue
            found = self._read(entry)
            if found is not None and found[1].key == entry.name:
                yield *name, *found

    def remove(self, keys: Collection[str]) -> None:
        """Look through the folder once, however many they are."""
        wanted = set(keys)
        with contextlib.suppress(OSError):
            for entry in list(os.scandir(self.folder)):
                name = record_name(entry.name)
                if name is not None and name[0].rpartition(".r")[0] in wanted:
                    with contextlib.suppress(OSError):
                        os.unlink(entry.path)
                    self._seen.pop(entry.name, None)

    def _read(self, entry: os.DirEntry[str]) -> tuple[str, WitnessRecord] | None:
        try:
            info = entry.stat()
        except OSError:
            return None
        mark = (info.st_size, info.st_mtime_ns)
        is_record = stat.S_ISREG(info.st_mode) and info.st_size <= LARGEST_RECORD_BYTES
        if not is_record or self._seen.get(entry.name) == mark:
            return None
        try:
            line = Path(entry.path).read_bytes()
        except OSError:
            return None  # a shared folder has its moments: it is looked at again
        self._seen[entry.name] = mark
        return parse_record(line)


def record_name(name: str) -> tuple[str, str] | None:
    """The attempt (KEY.rN) and the task (`.s0.t3`; empty: the script) of a record's file; None: it is none."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match["attempt"], match["task"] or "")


def parse_record(line: bytes) -> tuple[str, WitnessRecord] | None:
    """The record's text and what it says; None if it is cut short or no record."""
    try:
        record = parse_line(line)
    except ValueError:
        return None
    if not isinstance(record, WitnessRecord):
        return None
    return line.decode("ascii", "replace").strip()[18:], record
