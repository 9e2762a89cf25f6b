"""Every bound of the coordinator's socket has a sentence, which the one who passes it gets to read."""

from __future__ import annotations

import array
import json
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.coordinator import server as bounds
from aver.coordinator.server import Server


class Line:
    """A server and its clients in one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = Server(folder, select.epoll())

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self.folder / "sock"))
        client.settimeout(60)
        self.server.accept()
        return client

    def take(self) -> list[bytes]:
        """Read what has come, once from each."""
        return [line for peer in list(self.server.peers.values()) for line in self.server.read(peer)]

    def send(self, client: socket.socket, size: int) -> None:
        """Send so many bytes without a line end, which the server reads meanwhile, until it hangs up."""
        data = b"x" * (1 << 17)
        try:
            for _ in range(size // len(data)):
                client.sendall(data)
                self.take()
        except BrokenPipeError:
            pass


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    line = Line(tmp_path)
    yield line
    line.server.close()


def said(client: socket.socket) -> dict[str, Any]:
    """The reply, behind which the server has hung up."""
    data = b""
    while more := client.recv(65536):
        data += more
    document = json.loads(data)
    assert isinstance(document, dict)
    return document


def test_a_request_that_is_too_large(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LARGEST_REQUEST_BYTES", 1 << 20)
    client = line.connect()
    line.send(client, 2 << 20)
    assert said(client) == {"ok": False, "error": "the request is larger than 1 MiB", "status": 2}


def test_requests_that_are_too_large_together(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_HELD_BYTES", 4 << 20)
    clients = [line.connect() for _ in range(3)]
    for client in clients:
        line.send(client, 2 << 20)
    document = said(clients[2])
    assert document["error"] == "requests of more than 4 MiB in all are not complete"
    assert len(line.server.peers) == 2


def test_too_many_descriptors(line: Line) -> None:
    before = len(os.listdir("/proc/self/fd"))
    client = line.connect()
    for _ in range(2):
        client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 8))])
        line.take()
    assert said(client)["error"] == "the request has too many descriptors"
    client.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_too_many_connections(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that has been idle longest makes room; where everybody waits for something, the new one is told."""
    monkeypatch.setattr(bounds, "MOST_PEERS", 2)
    first, second, third = line.connect(), line.connect(), line.connect()
    assert first.recv(1) == b""
    for client in (second, third):
        client.sendall(b"{}\n")
    assert line.take() == [b"{}", b"{}"]
    fourth = line.connect()
    assert said(fourth) == {"ok": False, "error": "the coordinator has too many connections", "status": 69}
    assert len(line.server.peers) == 2


def test_one_who_does_not_read(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for it is bounded: it is dropped."""
    monkeypatch.setattr(bounds, "LARGEST_BACKLOG_BYTES", 1 << 20)
    client = line.connect()
    peer = next(iter(line.server.peers.values()))
    message = bounds.Refusal("x" * 65536, 1)
    for _ in range(64):
        line.server.send(peer, message)
    assert not peer.is_open
    client.close()
