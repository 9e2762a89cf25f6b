"""One coordinator per home.

The lock is a flock, which the kernel lets go when its holder dies, and a text that names host, boot
and pid. A text of another host is never taken over: a home on a shared file system is usual.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path

from aver.errors import CantWriteError, UnreachableError
from aver.home import read_boot_id


class LockBusy(Exception):
    """Another coordinator of this host holds the lock: all is well."""


class Lock:
    """Held from `acquire` until `release` or the process's end."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def acquire(cls, path: Path) -> Lock:
        """Take the lock; LockBusy if this host has a coordinator, UnreachableError if another host has."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CantWriteError(f"can't open the lock {path}: {error.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise LockBusy from None
        except OSError as error:
            os.close(fd)
            raise CantWriteError(f"can't lock {path}: {error.strerror}") from None
        holder = _parse(os.read(fd, 4096))
        if holder and holder.get("host") != socket.gethostname():
            os.close(fd)
            raise UnreachableError(elsewhere(path.parent, holder))
        text = {"host": socket.gethostname(), "boot": read_boot_id(), "pid": os.getpid(), "since": time.time()}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(text).encode() + b"\n", 0)
        return cls(fd)

    def release(self) -> None:
        """Let go, saying so: the text is empty."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def read_holder(path: Path) -> dict[str, object]:
    """What the lock's text says; empty if nobody holds it or it can't be read."""
    try:
        return _parse(path.read_bytes()[:4096])
    except OSError:
        return {}


def elsewhere(home: Path, holder: dict[str, object]) -> str:
    return (
        f"the home {home} is in use by a coordinator on host {holder.get('host')} (pid {holder.get('pid')}); "
        f"type this there, or set AVER_HOME to another folder; reading works from here"
    )


def _parse(text: bytes) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
