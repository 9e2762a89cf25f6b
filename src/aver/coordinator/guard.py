"""Guard the files of the home that the coordinator has open: others may remove or replace them.

A cleaner of old files takes the socket or the lock: they are made again. Without its store the coordinator says so,
takes nothing new, and goes on when the store is back. The kernel tells of changes in the home at once; on a network
file system, where it may not, a look every few seconds finds them.
"""

from __future__ import annotations

import ctypes
import os

from aver.coordinator.commit_thread import Committer
from aver.coordinator.server import Server
from aver.errors import AverError
from aver.home import Home
from aver.log import log
from aver.protocol.lock import Lock
from aver.protocol.messages import Refusal

LOOK_S = 5.0
_MOVED_FROM, _MOVED_TO, _DELETE = 0x40, 0x80, 0x200


class Guard:
    """`fileno` is readable when something was removed or replaced in the home; -1 if the kernel does not tell."""

    def __init__(self, home: Home, lock: Lock, server: Server, committer: Committer) -> None:
        self._home = home
        self._lock = lock
        self._server = server
        self._committer = committer
        self._fd = _watch(os.fspath(home.path))
        self.is_store_lost = False

    def fileno(self) -> int:
        return self._fd

    def look(self) -> None:
        """Make again what can be made again, and say what can't."""
        if self._fd >= 0:
            _drain(self._fd)
        try:
            self._committer.check_store()
        except AverError as error:
            self._lose_store(error)
            return
        if self.is_store_lost:
            self.is_store_lost = False
            log("the store is back")
        try:
            self._restore()
        except (OSError, AverError) as error:
            log(f"can't make again what was removed from the home: {error}")

    def _lose_store(self, error: AverError) -> None:
        if not self.is_store_lost:
            self.is_store_lost = True
            log(str(error))
        refusal = Refusal(str(error), error.exit_status)
        for peer in list(self._server.peers.values()):
            if peer.watches:  # it would wait for ever
                self._server.send(peer, refusal)
                self._server.drop(peer)

    def _restore(self) -> None:
        if self._server.restore():
            log("the socket was removed from the home: made again")
        if self._lock.restore_text():
            log("the lock was removed from the home: made again")
        self._home.prepare()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def _watch(folder: str) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        return -1
    if libc.inotify_add_watch(fd, os.fsencode(folder), _MOVED_FROM | _MOVED_TO | _DELETE) < 0:
        os.close(fd)
        return -1
    return fd


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 1 << 16):
            pass
    except BlockingIOError:
        pass
