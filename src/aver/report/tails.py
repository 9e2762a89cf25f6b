"""The end of a file, however large the file is. Anything that is no readable file has none."""

from __future__ import annotations

import os
import stat


def read_tail(path: str, most_bytes: int) -> bytes | None:
    """The last bytes of a regular file; None if there is no such file, or it can't be read. Never waits."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return None
        return os.pread(handle, most_bytes, max(0, status.st_size - most_bytes))
    except OSError:
        return None
    finally:
        os.close(handle)


def last_lines(path: str, most_lines: int, most_bytes: int) -> list[bytes]:
    """The last lines, within so many bytes; the first of them may be cut at its beginning."""
    return (read_tail(path, most_bytes) or b"").splitlines()[-most_lines:]
