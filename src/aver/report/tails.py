"""Read the end of a file of any size."""

from __future__ import annotations

import os
import stat

from aver.render.masking import Masking


def read_tail(path: str, most_bytes: int) -> bytes | None:
    """Return the last bytes of a regular file; None if it does not exist or can't be read. Never blocks."""
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
    """Return the last lines within a limit of bytes; the first line may be cut at its start."""
    return (read_tail(path, most_bytes) or b"").splitlines()[-most_lines:]


def masked_tail(path: str, most_bytes: int, masking: Masking) -> tuple[bytes, bool]:
    """Return the last bytes of a file without secrets, and whether that is all of it; nothing if it can't be read."""
    data = read_tail(path, 2 * most_bytes) or b""  # a secret may begin before the end that is returned
    masked = masking.whole(data)
    return masked[-most_bytes:], len(data) < 2 * most_bytes and len(masked) <= most_bytes
