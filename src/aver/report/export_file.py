"""A file that is whole or not there: written beside its place, synced, then renamed into it.

A place that is no regular file (a terminal, a pipe, /dev/null) is written to as it is. What can't be written is a
CantWriteError, and what was there before is then still there.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable

from aver.errors import CantWriteError

NEW_MODE = 0o666


def write_whole(path: str, chunks: Iterable[bytes]) -> int:
    """Write the chunks; return how many bytes they were."""
    try:
        place = os.path.realpath(path)
        try:
            before = os.stat(place)
        except FileNotFoundError:
            before = None
        if before is not None and not stat.S_ISREG(before.st_mode):
            with open(place, "wb") as file:
                return _copy(file.write, chunks)
        mode = NEW_MODE & ~_umask() if before is None else stat.S_IMODE(before.st_mode)
        return _replace(place, mode, chunks)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CantWriteError(f"can't write {path}: {reason}") from None


def _replace(place: str, mode: int, chunks: Iterable[bytes]) -> int:
    handle, scratch = tempfile.mkstemp(prefix=".aver-", dir=os.path.dirname(place))
    try:
        with open(handle, "wb") as file:
            size = _copy(file.write, chunks)
            os.fchmod(handle, mode)
            file.flush()
            os.fsync(handle)
        os.replace(scratch, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
    return size


def _copy(write: object, chunks: Iterable[bytes]) -> int:
    assert callable(write)
    size = 0
    for chunk in chunks:
        write(chunk)
        size += len(chunk)
    return size


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
