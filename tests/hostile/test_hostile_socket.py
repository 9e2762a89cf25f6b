"""Nonsense on the coordinator's socket: it answers or hangs up, it never dies of it and nobody else waits."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from aver.model.codec import encode
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, JobSpec, Request
from live_home import LiveHome, shell_job, wait_for


@contextlib.contextmanager
def _connected(live: LiveHome) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(live.home.path / "sock"))
        connection.settimeout(20)
        yield connection


def _answer(connection: socket.socket, data: bytes) -> dict[str, Any] | None:
    """Send, and return the first line that comes back; None if it hangs up."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(data)
        received = b""
        while b"\n" not in received:
            more = connection.recv(65536)
            if not more:
                return None
            received += more
        answer = json.loads(received.partition(b"\n")[0])
        assert isinstance(answer, dict)
        return answer
    return None


def _assert_well(live: LiveHome, pid: int | None) -> None:
    """The same coordinator is there, and works."""
    assert live.coordinator() == pid
    number = live.run_text("exit 3")
    live.settle([number])
    assert live.job(number).exit == ExitStatus(3)
    assert live.coordinator() == pid


@pytest.fixture
def pid(live: LiveHome) -> Iterator[int]:
    """A coordinator that has something to do, so that it stays."""
    live.run_text("sleep 600")
    live.wait_running(1)
    found = live.coordinator()
    assert found is not None
    yield found
    with live.client() as client:
        client.call("cancel", ids=[1], by="tester", signal=None, now=True)
    live.settle([1])


def test_bytes_that_are_no_request(live: LiveHome, pid: int) -> None:
    """Random bytes, half a line, deep JSON, a list, numbers, an unknown op: an error each, or the end of the line."""
    chance = random.Random(5)
    lines = [
        b"\n",
        b"\0\0\0\n",
        b"[]\n",
        b"null\n",
        b"{\n",
        b'{"op": null}\n',
        b'{"op": ["submit"]}\n',
        b'{"op": "no-such"}\n',
        b'{"op": "__init__"}\n',
        b'{"op": "submit"}\n',
        b'{"op": "\\ud800\\u0000"}\n',
        b"[" * 200_000 + b"\n",
        b'{"op":' * 100_000 + b"\n",
        b"1" * 100_000 + b"\n",
        b'{"op": "ping", "x": 1e999}\n',
        *[chance.randbytes(5000).replace(b"\n", b"") + b"\n" for _ in range(20)],
    ]
    for line in lines:
        with _connected(live) as connection:
            answer = _answer(connection, line)
            assert answer is None or answer["ok"] is False or b"ping" in line, (line[:80], answer)
    with _connected(live) as connection:
        connection.sendall(b'{"op": "submit", "submission": {"flo')
    _assert_well(live, pid)


WRONG: list[dict[str, Any]] = [
    {"op": op, **extra}
    for op in ("cancel", "hold", "release", "suspend", "resume", "accept", "watch", "retry")
    for extra in (
        {},
        {"ids": None},
        {"ids": "1"},
        {"ids": [None]},
        {"ids": [1.5]},
        {"ids": [[1]]},
        {"ids": [10**30], "run": 10**30},
        {"ids": [-(10**30)], "run": -1},
        {"ids": [0, -1, 999], "run": 999},
        {"ids": [True], "run": True, "by": 7},
        {"ids": [999], "run": {"a": 1}, "jobs": "x", "by": "\ud800\x00\n"},
        {"ids": [], "run": None, "jobs": [None]},
        {"ids": [999], "signal": 10**30},
        {"ids": [999], "signal": "KILL", "now": [1]},
    )
]


def test_requests_with_wrong_arguments(live: LiveHome, pid: int) -> None:
    """Every op with arguments of every wrong type and size: a reply each, and no death."""
    with _connected(live) as connection:
        for request in WRONG:
            answer = _answer(connection, json.dumps(request).encode() + b"\n")
            assert answer is not None, request
            assert answer.get("status") != 70, (request, answer)
    _assert_well(live, pid)


def _mutations(document: Any, chance: random.Random) -> Any:
    """The same document with one value made absurd."""
    numbers = [-1, 0, 10**30, -(10**30), 1e308, float("inf"), float("nan")]
    texts = ["", "\x00", "\ud800", "a" * 10000, "../" * 50]
    absurd = [None, *numbers, *texts, [], {}, [[]], True, {"a": {"b": []}}]
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            places.append((node, key))
            walk(value)

    copy = json.loads(json.dumps(document))
    walk(copy)
    node, key = chance.choice(places)
    node[key] = chance.choice(absurd)
    return copy


def test_submissions_with_absurd_values(live: LiveHome, pid: int) -> None:
    """One value of a submission made absurd, many times: refused in words, or a job that ends; never a death."""
    chance = random.Random(7)
    jobs = (
        shell_job("one", "exit 0", request=Request(time_s=5, mem_bytes=1 << 26), kill_wait_s=1.0, env=(("A", "b"),)),
        JobSpec("two", shell_job("x", "exit 1").command, deadline_at=1e10, begin_at=1.0),
    )
    document = encode(live.submission(FlowSpec("absurd", jobs)))
    taken = []
    for _ in range(300):
        request = {"op": "submit", "submission": _mutations(document, chance), "env": ["PATH=/bin:/usr/bin"]}
        with _connected(live) as connection:
            answer = _answer(connection, json.dumps(request).encode() + b"\n")
        assert live.coordinator() == pid, request
        assert answer is not None, request
        assert answer.get("status") != 70, (request, answer)
        if answer["ok"]:
            taken.append((answer["run"], request))
    with live.client() as client:
        client.call("cancel", ids=[run for run, _ in taken], by="tester", signal=None, now=True)
    live.settle([run for run, _ in taken])
    assert len(taken) < 300
    _assert_well(live, pid)
    live.assert_store_is_whole()


def test_huge_line(live: LiveHome, pid: int) -> None:
    """A line that never ends is cut off, and nobody else waits meanwhile."""
    with _connected(live) as connection:
        block = b"x" * (1 << 20)
        with contextlib.suppress(OSError):
            for _ in range(300):
                connection.sendall(block)
            assert connection.recv(100) == b""
    _assert_well(live, pid)


def test_client_that_never_reads(live: LiveHome, pid: int) -> None:
    """A watcher that does not read its pushes holds nobody up, and is dropped or waits alone."""
    with _connected(live) as lazy:
        lazy.sendall(b'{"op": "watch", "ids": [1]}\n')
        lazy.setblocking(False)
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while True:
                lazy.send(b'{"op": "no-such-request-with-a-name"}\n' * 1000)
        _assert_well(live, pid)


def test_many_clients(live: LiveHome, pid: int) -> None:
    """Three hundred connections at once are served, and gone when they hang up."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(_connected(live)) for _ in range(300)]
        for connection in clients:
            answer = _answer(connection, b'{"op": "ping"}\n')
            assert answer is not None
            assert answer["ok"] is True
    wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) < 100, "closed connections")
    _assert_well(live, pid)


def test_idle_connections_keep_nobody_out(live: LiveHome, pid: int) -> None:
    """More idle connections than there are descriptors: the oldest go, and everybody else is served."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (200, hard))
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(_connected(live))
        _assert_well(live, pid)
        assert len(os.listdir(f"/proc/{pid}/fd")) < 200


def test_descriptors_that_nobody_takes(live: LiveHome, pid: int) -> None:
    """Descriptors that come with a request that needs none are closed; too many with one request are refused."""
    before = len(os.listdir(f"/proc/{pid}/fd"))
    with open(os.devnull, "rb") as null, _connected(live) as connection:
        for _ in range(50):
            socket.send_fds(connection, [b'{"op": "ping"}\n'], [null.fileno()] * 3)
            received = connection.recv(65536)
            assert json.loads(received)["ok"] is True
        assert len(os.listdir(f"/proc/{pid}/fd")) < before + 20
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(50):  # of one request that never ends
                socket.send_fds(connection, [b"["], [null.fileno()] * 8)
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(65536):
                pass
    _assert_well(live, pid)
    assert len(os.listdir(f"/proc/{pid}/fd")) < before + 20


def test_term_is_heard_while_nothing_else_happens(live: LiveHome, pid: int) -> None:
    """A coordinator that waits for a long time leaves when it is told to."""
    time.sleep(1)  # it has nothing to do any more: the wait has begun
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: live.coordinator() is None, "the coordinator's leaving", deadline_s=15)
