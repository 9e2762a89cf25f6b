"""Follow a growing file, as `tail -f` does, and never lose its end.

Woken by inotify where the kernel has it, and by a slow poll everywhere, since inotify does not
see what other hosts write to a network file system. A file that is truncated or replaced (a new
attempt) is read from its beginning again.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
from types import TracebackType
from typing import BinaryIO

IN_MODIFY, IN_ATTRIB, IN_MOVE_SELF, IN_DELETE_SELF = 0x2, 0x4, 0x800, 0x400
CHUNK = 256 * 1024
POLL_S = 0.05  # while there is no file or no inotify
SLOW_POLL_S = 0.5  # beside inotify


class Follower:
    """Reads what is new in `path`, from `offset` on; the file need not exist yet."""

    def __init__(self, path: str | bytes, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._file = -1
        self._identity: tuple[int, int] | None = None
        self._inotify = _inotify_init()
        self._watch = -1

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for descriptor in (self._file, self._inotify):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._inotify = -1

    @property
    def offset(self) -> int:
        """Where the next byte is."""
        return self._offset

    def read(self) -> bytes:
        """Return the next bytes, or b"" when there is nothing new now."""
        data = self._read_open()
        if data:
            return data
        self._reopen()
        return self._read_open()

    def wait(self, wake: int | None = None) -> None:
        """Return when the file may have grown, when `wake` is readable, or after a short time."""
        inputs = [wake] if wake is not None else []
        timeout = POLL_S
        if self._watch >= 0:
            inputs.append(self._inotify)
            timeout = SLOW_POLL_S
        ready, _, _ = select.select(inputs, [], [], timeout)
        if self._watch >= 0 and self._inotify in ready:
            os.read(self._inotify, 4096)

    def _read_open(self) -> bytes:
        if self._file < 0:
            return b""
        if os.fstat(self._file).st_size < self._offset:
            self._offset = 0
        data = os.pread(self._file, CHUNK, self._offset)
        self._offset += len(data)
        return data

    def _reopen(self) -> None:
        """Open the file if it is there and is not the one that is open."""
        try:
            found = os.stat(self._path)
        except OSError:
            return
        identity = (found.st_dev, found.st_ino)
        if identity == self._identity:
            return
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return
        if self._file >= 0:
            os.close(self._file)
            self._offset = 0
        self._file, self._identity = file, identity
        self._watch = _inotify_watch(self._inotify, self._path)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _inotify_init() -> int:
    try:
        return int(_libc().inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    except (OSError, AttributeError):
        return -1


def _inotify_watch(inotify: int, path: str | bytes) -> int:
    if inotify < 0:
        return -1
    mask = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF
    watch = int(_libc().inotify_add_watch(inotify, os.fsencode(path), mask))
    if watch < 0 and ctypes.get_errno() not in (errno.ENOSPC, errno.ENOENT, errno.EACCES, errno.ENOMEM):
        raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return watch


def tail_offset(file: BinaryIO, lines: int | None) -> int:
    """Where the last `lines` lines begin; found from the end, so that huge files cost nothing."""
    if lines is None:
        return 0
    end = os.fstat(file.fileno()).st_size
    if lines == 0:
        return end
    # A newline at the very end closes the last line; it begins none.
    left, at = lines, end
    while at > 0:
        begin = max(0, at - CHUNK)
        block = os.pread(file.fileno(), at - begin, begin)
        place = len(block)
        if at == end and block.endswith(b"\n"):
            place -= 1
        while (place := block.rfind(b"\n", 0, place)) >= 0:
            left -= 1
            if left == 0:
                return begin + place + 1
        at = begin
    return 0
