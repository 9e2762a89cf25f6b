"""The coordinator's socket: nobody is taken in by one who leaves."""

from __future__ import annotations

import select
import socket
from pathlib import Path

import pytest

from aver.coordinator.server import Server


def connect(folder: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(str(folder / "sock"))
    return client


def test_who_comes_just_before_it_leaves_is_served(tmp_path: Path) -> None:
    """One who is connected and not accepted keeps it from leaving, and others may come again."""
    server = Server(tmp_path, select.epoll())
    early = connect(tmp_path)
    assert not server.close_if_alone()
    assert len(server.peers) == 1
    early.close()
    late = connect(tmp_path)
    server.accept()
    assert len(server.peers) == 2
    late.close()
    server.close()


def test_who_comes_just_after_it_left_is_refused(tmp_path: Path) -> None:
    """Before a byte is sent: then it starts another coordinator, and nothing is lost."""
    server = Server(tmp_path, select.epoll())
    assert server.close_if_alone()
    with pytest.raises(ConnectionRefusedError):
        connect(tmp_path)
    server.close()
