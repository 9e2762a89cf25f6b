"""How far the store ever came, kept in a file beside it: a store that has lost commits can't say so itself.

`committed` has the store's id, the number of the newest event and the next number of a run, and is written after each
commit. So it is never ahead of the store, unless somebody removed `aver.db-wal` after a crash, or put an older copy
back. It is not synced, and need not be there: without it nothing is known.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from aver.model.record import Record
from aver.store.losses import NAME, parse


class Loss(Record):
    """Events that were committed and are not in the store: from `first` to `last`."""

    first: int
    last: int
    is_all: bool = False  # the store is new: the one that was here before is gone


class HighWater:
    """`seq` and `next_id` are the highest of the file and of the store."""

    def __init__(self, database: Path, home_id: str, stored_seq: int, next_id: int) -> None:
        self._path = database.with_name(NAME)
        self._home_id = home_id
        self._fd = _open(self._path)
        seq, number, is_own = self._read()
        if not is_own and stored_seq:
            seq = number = 0  # another store's count, beside one that has its own events
        self.loss = Loss(stored_seq + 1, seq, not is_own) if seq > stored_seq else None
        seq = seq if is_own else 0
        self.seq, self.next_id = max(seq, stored_seq), max(number, next_id)
        self._write()

    def rise(self, seq: int, next_id: int) -> None:
        """These are durable now. What can't be written is left out: the file is then behind."""
        self.seq, self.next_id = seq, max(self.next_id, next_id)
        self._write()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> tuple[int, int, bool]:
        """The numbers of the file, and whether they are this store's; 0 if they are nobody's."""
        data = b""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                data = os.pread(self._fd, 4096, 0)
        found = parse(data)
        if found is None and data:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
        return (0, 0, True) if found is None else (found[1], found[2], found[0] == self._home_id)

    def _write(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.pwrite(self._fd, f"{self._home_id} {self.seq:019} {self.next_id:019}\n".encode(), 0)


def _open(path: Path) -> int:
    """-1 if it can't be opened: another kind of file, or a folder that can't be written."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError:
        return -1
