"""What a watcher is told, against a coordinator's end of the socket that the test holds."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.home import Home
from aver.protocol import client as client_module
from aver.protocol.client import Change, Client


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[Client, socket.socket]]:
    ours, theirs = socket.socketpair()
    client = Client(Home(tmp_path), ours)
    yield client, theirs
    client.close()
    theirs.close()


def say(theirs: socket.socket, *messages: dict[str, object]) -> None:
    theirs.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


def test_changes_of_one_moment_are_one(ends: tuple[Client, socket.socket]) -> None:
    """Who shows many jobs reads the store once for all of them; nothing is told twice."""
    client, theirs = ends
    say(theirs, {"ok": True, "settled": []})
    say(theirs, {"changed": [2, 3]}, {"changed": [3, 4], "settled": [4]}, {"changed": [], "settled": [1]})
    assert list(client.watch([1, 4])) == [Change((), ()), Change((2, 3, 4), (4, 1))]


def test_the_end_is_told_at_once(ends: tuple[Client, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    """However long changes are gathered: when all is settled, nothing more is waited for."""
    monkeypatch.setattr(client_module, "GATHER_S", 3600.0)
    client, theirs = ends
    say(theirs, {"ok": True, "settled": []}, {"changed": [1]}, {"changed": [1], "settled": [1]})
    assert list(client.watch([1], timeout_s=60)) == [Change((), ()), Change((1,), (1,))]
