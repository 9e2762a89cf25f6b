"""One witness and the connection to it.

A slot is a number in the home's `witness` folder: `N.sock`, on which the witness listens,
and `N.log`, its journal. Attaching to a witness that runs already and to a new one are the
same thing. What the journal says and what the connection says are the same lines; `read_offset`
is how much of the journal is known, so each line is heard once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import zlib
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from aver.engines.api import Order

FIRST_FREE_FD = 64  # a witness gets 3 and 4
HEADER_BYTES = 18  # length, space, sum, space
LINE_BEGIN = b'{"ev":'
RECEIVE_BYTES = 1 << 18
BACKLOG = 1024  # a witness that is stopped keeps the connections of every coordinator that came and went


class Slot:
    """A witness that we are connected to, or the journal of one that is gone (connection None)."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.socket_path = folder / f"{number}.sock"
        self.journal_path = folder / f"{number}.log"
        self.connection: socket.socket | None = None
        self.key: str | None = None  # what runs in it, as far as we know
        self.order: Order | None = None  # the order of that key, if it was ours
        self.has_begun = False  # its beginning is in the journal, or its start was said
        self.has_said_hello = False
        self.is_of_earlier_version = False  # as its hello shows
        self.ended: set[str] = set()  # keys whose end is in the journal and was heard
        self.cut_off: set[str] = set()  # the same, in the part that the witness was told to cut off
        self.job_pid: int | None = None
        self.job_started_at = 0.0
        self.witness_pid: int | None = None
        self.is_ours = False  # our own child, to be reaped
        self.read_offset = 0
        self.durable_offset = 0
        self.idle_since = 0.0
        self.unsettled: set[str] = set()  # ends that are heard and not yet durable in the store
        self._received = b""
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()  # with duplicates of the descriptors

    def start(self, binary: str, folder_fd: int) -> None:
        """Start a new witness and connect to it; OSError if that can't be done."""
        journal_fd = _high(os.open(self.journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600))
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(f"/proc/self/fd/{folder_fd}/{self.socket_path.name}")
                listener.listen(BACKLOG)
                listener_fd = fcntl.fcntl(listener, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD)
                try:
                    actions = [
                        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
                        (os.POSIX_SPAWN_DUP2, 0, 1),
                        (os.POSIX_SPAWN_DUP2, 0, 2),
                        (os.POSIX_SPAWN_DUP2, listener_fd, 3),
                        (os.POSIX_SPAWN_DUP2, journal_fd, 4),
                    ]
                    self.witness_pid = os.posix_spawn(binary, [binary, "slot"], {}, file_actions=actions, setsid=True)
                finally:
                    os.close(listener_fd)
        finally:
            os.close(journal_fd)
        self.is_ours = True
        if not self.connect(folder_fd):
            raise OSError(errno.ECONNREFUSED, "the witness ended at once")

    def connect(self, folder_fd: int) -> bool:
        """Connect to the witness; False if nobody listens any more."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            connection.setblocking(False)
            connection.connect(f"/proc/self/fd/{folder_fd}/{self.socket_path.name}")
        except (ConnectionRefusedError, FileNotFoundError):
            connection.close()
            return False
        except OSError:
            connection.close()
            raise
        self.connection = connection
        return True

    def send(self, frame: bytes, poller: select.epoll, fds: Sequence[int] = ()) -> None:
        """Send, now or when the witness reads on; the descriptors stay the caller's. OSError if they can't be sent.

        A broken connection is noticed by `receive`.
        """
        self._unsent.append((frame, _duplicates(fds)))
        self.flush(poller)

    def flush(self, poller: select.epoll) -> None:
        if self.connection is None:
            return
        while self._unsent:
            frame, fds = self._unsent[0]
            try:
                sent = socket.send_fds(self.connection, [frame], fds) if fds else self.connection.send(frame)
            except BlockingIOError:
                break
            except OSError:
                self._drop_unsent()
                break
            _close(fds)
            if sent < len(frame):
                self._unsent[0] = (frame[sent:], ())
                break
            self._unsent.popleft()
        mask = select.EPOLLIN | select.EPOLLOUT if self._unsent else select.EPOLLIN
        poller.modify(self.connection, mask)

    def _drop_unsent(self) -> None:
        while self._unsent:
            _close(self._unsent.popleft()[1])

    def receive(self) -> tuple[list[bytes], bool]:
        """Return the whole lines' JSON that have come, and whether the witness is still there."""
        if self.connection is None:
            return [], False
        alive = True
        try:
            data = self.connection.recv(RECEIVE_BYTES)
            alive = bool(data)
        except BlockingIOError:
            return [], True
        except OSError:
            data, alive = b"", False
        lines, self._received, _ = split_lines(self._received + data)
        return lines, alive

    def read_journal(self) -> list[bytes]:
        """Return the journal's lines that are not known yet."""
        try:
            with open(self.journal_path, "rb") as file:
                file.seek(self.read_offset)
                data = file.read()
        except OSError:
            return []  # what can't be read is no evidence
        lines, _, used = split_lines(data)
        self.read_offset += used
        return lines

    def disconnect(self) -> None:
        self._drop_unsent()
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def remove_files(self) -> None:
        for path in (self.socket_path, self.journal_path):
            with contextlib.suppress(OSError):
                path.unlink()


def split_lines(data: bytes) -> tuple[list[bytes], bytes, int]:
    """Split checked lines off: their JSON, what is left over, and how many bytes were used up.

    A line whose length or sum does not fit is no line: it is passed over. If a whole line ends it, as after
    half a line of something else, that one counts.
    """
    lines: list[bytes] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        header, body = data[position : position + HEADER_BYTES], data[position + HEADER_BYTES : end]
        is_line = _fits(header, body)
        if not is_line:
            begin = max(data.rfind(LINE_BEGIN, position, end), position + HEADER_BYTES)
            header, body = data[begin - HEADER_BYTES : begin], data[begin:end]
            is_line = _fits(header, body)
        if is_line:
            lines.append(body)
        position = end + 1
    return lines, data[position:], position


def _fits(header: bytes, body: bytes) -> bool:
    try:
        length, total = int(header[0:8], 16), int(header[9:17], 16)
    except ValueError:
        return False
    return length == len(body) and total == zlib.crc32(body)


def _high(fd: int) -> int:
    """Move a descriptor out of the way of those that a witness gets."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD)
    finally:
        os.close(fd)


def _duplicates(fds: Sequence[int]) -> tuple[int, ...]:
    """Duplicate all of them; OSError, and nothing is left open, if one can't be."""
    copies: list[int] = []
    try:
        for fd in fds:
            copies.append(os.dup(fd))
    except OSError:
        _close(copies)
        raise
    return tuple(copies)


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
