"""The coordinator's socket and those who are connected to it.

Only the owner gets in: the socket has mode 0600 and the peer's uid is checked. Nobody can hold the
loop up: reads and writes never block, and one who does not read is dropped. Connections, their descriptors
and the bytes that they hold are bounded; where there are too many, the one that has been idle longest goes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import select
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from aver.errors import CantWriteError, UnreachableError, UsageError
from aver.model.codec import dumps
from aver.model.record import Mutable, field
from aver.protocol.messages import Changed, Message, Refusal, message_document

LARGEST_REQUEST_BYTES = 64 << 20
LARGEST_BACKLOG_BYTES = 64 << 20
MOST_HELD_BYTES = 256 << 20  # of all requests that are not complete
RECEIVE_BYTES = 1 << 18
MOST_PEERS = 4096
MOST_DESCRIPTORS = 8
STREAMS = 3


def close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _most_peers() -> int:
    """Connections have a quarter of the descriptors: the others are for jobs."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_PEERS if most == resource.RLIM_INFINITY else min(MOST_PEERS, most // 4)


class Peer(Mutable, eq=False):
    """One connected client."""

    connection: socket.socket
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    watches: set[int] = field(default_factory=set)  # numbers that it waits for
    is_foreground: bool = False
    is_open: bool = True
    descriptors: list[int] = field(default_factory=list)  # that came with its requests and are not taken yet
    token: str | None = None  # of the step that it waits for
    owns: int | None = None  # a run whose standard streams are its own: they end together
    replies_due: int = 0  # to requests that were read

    def take_streams(self) -> tuple[int, ...]:
        """The standard streams that came with the last request; the caller closes them."""
        taken, self.descriptors = tuple(self.descriptors[:STREAMS]), self.descriptors[STREAMS:]
        return taken

    def close_descriptors(self) -> None:
        """Close those that nobody took."""
        close_all(self.descriptors)
        self.descriptors = []

    @property
    def is_idle(self) -> bool:
        """Whether it waits for nothing, as far as is known."""
        waits = self.watches or self.token is not None or self.owns is not None or self.replies_due > 0
        return not (waits or self.unsent)


class Server:
    """Listens in the home; hands out whole requests."""

    def __init__(self, folder: Path, poller: select.epoll) -> None:
        self._poller = poller
        self._path = folder / "sock"
        self.listener, self._file = _listen(folder)
        poller.register(self.listener, select.EPOLLIN)
        self.peers: dict[int, Peer] = {}
        self.orphans: list[int] = []  # runs whose owner hung up; the loop ends them
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.lost_steps: list[str] = []  # tokens of steps whose srun hung up; the loop drops those that have not begun

    def restore(self) -> bool:
        """Listen in the home again if the socket's file was taken away; return whether that was so."""
        if self._has_file():
            return False
        self._listen_again()
        return True

    def close_if_alone(self) -> bool:
        """Take nobody in from here on, unless somebody came before that: then listen again, and return False."""
        self.listener.shutdown(socket.SHUT_RDWR)  # who connects now is refused, and looks for another coordinator
        self.accept()
        if not self.peers:
            return True
        self._listen_again()
        return False

    def _listen_again(self) -> None:
        listener, file = _listen(self._path.parent)
        self.accept()  # those who came before
        self._poller.unregister(self.listener)
        self.listener.close()
        self.listener, self._file = listener, file
        self._poller.register(listener, select.EPOLLIN)

    def _has_file(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), self._file)
        except OSError:
            return False

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._turn_away():
                    return
                continue
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", credentials)[1] != os.geteuid():
                connection.close()
                continue
            connection.setblocking(False)
            peer = self.peers[connection.fileno()] = Peer(connection)
            self._poller.register(connection, select.EPOLLIN)
            if len(self.peers) > _most_peers() and not self._drop_idle(peer):
                self.send(peer, Refusal("the coordinator has too many connections", UnreachableError.exit_status))
                self.drop(peer)

    def _drop_idle(self, new: Peer) -> bool:
        """Drop the oldest connection that waits for nothing, in favour of a new one."""
        idle = next((peer for peer in self.peers.values() if peer.is_idle and peer is not new), None)
        if idle is not None:
            self.drop(idle)
        return idle is not None

    def _turn_away(self) -> bool:
        """No descriptor is left: hang up on one who wants to connect, so that the listener is not ready for ever."""
        os.close(self._spare)
        try:
            connection, _ = self.listener.accept()
            connection.close()
        except OSError:
            return False
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return True

    def read(self, peer: Peer) -> list[bytes]:
        """Return the requests that are complete; a peer that hung up, or sends too much, is dropped."""
        try:
            data, descriptors, _, _ = socket.recv_fds(peer.connection, RECEIVE_BYTES, MOST_DESCRIPTORS)
            peer.descriptors += descriptors
            if len(peer.descriptors) > MOST_DESCRIPTORS:
                self._refuse(peer, "the request has too many descriptors")
                return []
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.drop(peer)
            return []
        peer.received += data
        if b"\n" not in data:
            if len(peer.received) > LARGEST_REQUEST_BYTES:
                self._refuse(peer, f"the request is larger than {LARGEST_REQUEST_BYTES >> 20} MiB")
            elif len(peer.received) > RECEIVE_BYTES and self._held_bytes() > MOST_HELD_BYTES:
                self._refuse(peer, f"requests of more than {MOST_HELD_BYTES >> 20} MiB in all are not complete")
            return []
        *lines, rest = bytes(peer.received).split(b"\n")
        peer.received = bytearray(rest)
        peer.replies_due += len(lines)
        return lines

    def hung_up(self) -> list[str]:
        """Tokens of steps whose srun is gone, also where what it said last is not read yet."""
        gone = [self.peers.get(fd) for fd, events in self._poller.poll(0) if events & select.EPOLLHUP]
        return [peer.token for peer in gone if peer is not None and peer.token is not None]

    def _held_bytes(self) -> int:
        return sum(len(peer.received) for peer in self.peers.values())

    def _refuse(self, peer: Peer, why: str) -> None:
        self.send(peer, Refusal(why, UsageError.exit_status))
        self.drop(peer)

    def send(self, peer: Peer, message: Message) -> None:
        """Send a reply or a push; what the peer does not read yet is kept."""
        if not peer.is_open:
            return
        if isinstance(message, Changed):  # after each commit, to whoever watches: numbers alone
            text = dumps(message)
        else:
            document = message_document(message)
            if "ok" in document:
                peer.replies_due -= 1
            text = json.dumps(document)
        peer.unsent += text.encode("ascii") + b"\n"
        self.flush(peer)

    def flush(self, peer: Peer) -> None:
        try:
            sent = peer.connection.send(peer.unsent)
            del peer.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.drop(peer)
            return
        if len(peer.unsent) > LARGEST_BACKLOG_BYTES:
            self.drop(peer)
            return
        mask = select.EPOLLIN | select.EPOLLOUT if peer.unsent else select.EPOLLIN
        self._poller.modify(peer.connection, mask)

    def drop(self, peer: Peer) -> None:
        if peer.is_open:
            peer.is_open = False
            if peer.owns is not None:
                self.orphans.append(peer.owns)
            if peer.token is not None:
                self.lost_steps.append(peer.token)
            self.peers.pop(peer.connection.fileno(), None)
            self._poller.unregister(peer.connection)
            peer.connection.close()
            peer.close_descriptors()

    def close(self) -> None:
        """Stop listening; the socket's file goes first, so that nobody connects to one who leaves."""
        if self._has_file():
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
        self.listener.close()
        os.close(self._spare)
        for peer in list(self.peers.values()):
            self.drop(peer)


def _listen(folder: Path) -> tuple[socket.socket, os.stat_result]:
    """A listening socket in the folder, and its file. The path is short whatever the folder's is."""
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        path = f"/proc/self/fd/{folder_fd}/sock"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(128)
        return listener, os.stat(path)
    except OSError as error:
        listener.close()
        raise CantWriteError(f"can't make the socket {folder / 'sock'}: {error.strerror}") from None
    finally:
        os.close(folder_fd)
