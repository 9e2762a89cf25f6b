"""The coordinator's socket and those who are connected to it.

Only the owner gets in: the socket has mode 0600 and the peer's uid is checked. Nobody can hold the
loop up: reads and writes never block, and one who does not read is dropped.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LARGEST_REQUEST_BYTES = 256 << 20
LARGEST_BACKLOG_BYTES = 64 << 20
RECEIVE_BYTES = 1 << 18
LONGEST_NUMBER = 20  # characters
MOST_DESCRIPTORS = 8


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError("a whole number that nothing here can hold")
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number


_decoder = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_finite)


@dataclass(eq=False, slots=True)
class Peer:
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

    def take_descriptors(self) -> tuple[int, ...]:
        """Those that came with the last request; the caller closes them."""
        taken, self.descriptors = tuple(self.descriptors), []
        return taken


class Server:
    """Listens in the home; hands out whole requests."""

    def __init__(self, folder: Path, poller: select.epoll) -> None:
        self._poller = poller
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            path = f"/proc/self/fd/{folder_fd}/sock"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            self.listener.bind(path)
            os.chmod(path, 0o600)
        finally:
            os.close(folder_fd)
        self.listener.listen(128)
        self._folder = folder
        poller.register(self.listener, select.EPOLLIN)
        self.peers: dict[int, Peer] = {}
        self.orphans: list[int] = []  # runs whose owner hung up; the loop ends them
        self.lost_steps: list[str] = []  # tokens of steps whose srun hung up; the loop drops those that have not begun

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", credentials)[1] != os.geteuid():
                connection.close()
                continue
            connection.setblocking(False)
            self.peers[connection.fileno()] = Peer(connection)
            self._poller.register(connection, select.EPOLLIN)

    def read(self, peer: Peer) -> list[dict[str, Any]]:
        """Return the requests that are complete; a peer that hung up or talks nonsense is dropped."""
        try:
            data, descriptors, _, _ = socket.recv_fds(peer.connection, RECEIVE_BYTES, MOST_DESCRIPTORS)
            peer.descriptors += descriptors
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
                self.drop(peer)
            return []
        *lines, rest = bytes(peer.received).split(b"\n")
        peer.received = bytearray(rest)
        requests: list[dict[str, Any]] = []
        for line in lines:
            try:
                request = _decoder.decode(line.decode())
            except (ValueError, RecursionError):
                request = None
            requests.append(request if isinstance(request, dict) else {})
        return requests

    def send(self, peer: Peer, message: dict[str, Any]) -> None:
        if not peer.is_open:
            return
        peer.unsent += json.dumps(message).encode("ascii") + b"\n"
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
            for descriptor in peer.take_descriptors():
                os.close(descriptor)

    def close(self) -> None:
        """Stop listening; the socket's file goes first, so that nobody connects to one who leaves."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / "sock").unlink()
        self.listener.close()
        for peer in list(self.peers.values()):
            self.drop(peer)
