"""Write a file that the user named: replaced as a whole, or unchanged on failure.

A terminal, a pipe or a device is written to directly.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from aver.durable_files import write_chunks
from aver.errors import CantWriteError

NEW_MODE = 0o666


def write_whole(path: str, chunks: Iterable[bytes]) -> int:
    """Write the chunks and return their size in bytes; raise CantWriteError if that fails."""
    try:
        place = os.path.realpath(path)
        try:
            before = os.stat(place)
        except FileNotFoundError:
            before = None
        if before is not None and not stat.S_ISREG(before.st_mode):
            with open(place, "wb") as file:
                return sum(file.write(chunk) for chunk in chunks)
        return write_chunks(place, chunks, NEW_MODE & ~_umask(), before)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CantWriteError(f"can't write {path}: {reason}") from None


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
