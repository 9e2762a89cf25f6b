"""One coordinator per home.

The lock is held on the database itself: a byte far behind its end, locked for an open file, which the kernel lets go
when its holder dies. Whoever takes that file away takes the store away; nothing else that is removed lets a second
coordinator in. The file `lock` names the holder: host, boot, pid and version. It is locked as well, for
coordinators of earlier versions. A text of another host is never taken over: a home on a shared file system is usual.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import time

from aver.errors import CantWriteError, UnreachableError
from aver.home import Home, parse_holder, read_boot_id
from aver.version import __version__

LOCKED_BYTE = 1 << 62  # SQLite locks bytes around 1 << 30
_FLOCK = "hhqqi4x"  # struct flock: l_type, l_whence, l_start, l_len, l_pid


class LockBusy(Exception):
    """Another coordinator of this host holds the lock: all is well."""


class Lock:
    """Held from `acquire` until `release` or the process's end. SQLite's locks end when the database's file is closed
    anywhere in this process, so `release` comes after the store was closed."""

    def __init__(self, home: Home, database_fd: int, text_fd: int) -> None:
        self._home = home
        self._database_fd = database_fd
        self._text_fd = text_fd

    @classmethod
    def acquire(cls, home: Home) -> Lock:
        """Take the lock; LockBusy if this host has a coordinator, UnreachableError if another host has."""
        text_fd = _open(home.lock)
        try:
            if not _lock_text(home, text_fd):
                raise LockBusy
            holder = parse_holder(os.pread(text_fd, 4096, 0))
            if holder and holder.get("host") != socket.gethostname():
                raise UnreachableError(elsewhere(home, holder))
            database_fd = _open(home.database)
            try:
                _lock_database(home, database_fd)
                _write_text(home, text_fd)
            except BaseException:
                os.close(database_fd)
                raise
        except BaseException:
            os.close(text_fd)
            raise
        return cls(home, database_fd, text_fd)

    def restore_text(self) -> bool:
        """Write the file `lock` again if it was taken away; return whether that was so.

        Who has locked a new one meanwhile finds the database locked, and leaves.
        """
        if is_file(self._home.lock, self._text_fd):
            return False
        text_fd = _open(self._home.lock)
        if not _lock_text(self._home, text_fd):
            os.close(text_fd)
            return False
        try:
            _write_text(self._home, text_fd)
        except CantWriteError:
            os.close(text_fd)
            raise
        os.close(self._text_fd)
        self._text_fd = text_fd
        return True

    def release(self) -> None:
        """Let go, saying so: the text is empty."""
        os.ftruncate(self._text_fd, 0)
        os.close(self._text_fd)
        os.close(self._database_fd)


def is_file(path: os.PathLike[str], fd: int) -> bool:
    """Whether the path leads to the file that is open."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def elsewhere(home: Home, holder: dict[str, object]) -> str:
    return (
        f"the home {home.path} is in use by a coordinator on host {holder.get('host')} (pid {holder.get('pid')}); "
        f"type this there, or set AVER_HOME to another folder; reading works from here"
    )


def _open(path: os.PathLike[str]) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CantWriteError(f"can't open {os.fspath(path)}: {error.strerror}") from None


def _lock_text(home: Home, fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise CantWriteError(f"can't lock {home.lock}: {error.strerror}") from None
    return True


def _lock_database(home: Home, fd: int) -> None:
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, asked)
    except (BlockingIOError, PermissionError):
        raise LockBusy from None
    except OSError as error:
        raise CantWriteError(f"can't lock {home.database}: {error.strerror}") from None


def _write_text(home: Home, fd: int) -> None:
    text = {
        "host": socket.gethostname(), "boot": read_boot_id(), "pid": os.getpid(), "since": time.time(),
        "version": __version__,
    }  # fmt: skip
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(text).encode() + b"\n", 0)
    except OSError as error:
        raise CantWriteError(f"can't write {home.lock}: {error.strerror}") from None
