"""Every field of every operation, replaced by hostile values: the coordinator answers each, and goes on."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from aver.model.codec import encode
from aver.model.exit import ExitStatus
from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Need, Needs, Request
from aver.protocol.messages import REQUESTS
from live_home import LiveHome, shell_job

Document = dict[str, Any]
Path = tuple[str | int, ...]


DEEP = {f"<{levels} lists>": "[" * levels + "]" * levels for levels in (300, 950, 985)}

HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 2, 1 << 62, -(1 << 63), 10**30, 0.5, 1e308, "", "1", "\0", "\ud800", "\udcff", "a\nb",
    "x" * 70_000, "../../x", [], [None], [1, 1], ["\0"], ["\ud800"], ["a", "b"], [[]], [["a"]], {}, {"a": 1},
    {"\ud800": "\0"},
    {"is": "x"}, *DEEP,
)  # fmt: skip


def _paths(document: Any, path: Path = ()) -> Iterator[Path]:
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _poisoned(document: Document) -> Iterator[tuple[Path, Document]]:
    """The document with each value in turn replaced by each hostile one, taken away, and with one that is not known."""
    for path in _paths(document):
        for value in (*HOSTILE, ...):
            changed = copy.deepcopy(document)
            place: Any = changed
            for key in path[:-1]:
                place = place[key]
            if value is ...:
                del place[path[-1]]
            else:
                place[path[-1]] = value
            if changed.get("op") == document["op"] or path == ("op",):
                yield path, changed
    for name in ("unknown", "\ud800", ""):
        yield (name,), {**document, name: 1}


@contextlib.contextmanager
def _connected(live: LiveHome) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(live.home.path / "sock"))
        connection.settimeout(60)
        yield connection


def _answer(connection: socket.socket, request: Document, streams: tuple[int, ...] = ()) -> Document | None:
    """The reply: pushes come before and after it."""
    text = json.dumps(request)
    for mark, value in DEEP.items():
        text = text.replace(json.dumps(mark), value)
    if streams:
        socket.send_fds(connection, [text[:1].encode()], streams)
    connection.sendall(text[1 if streams else 0 :].encode() + b"\n")
    received = b""
    while True:
        while b"\n" not in received:
            more = connection.recv(1 << 20)
            if not more:
                return None
            received += more
        line, _, received = received.partition(b"\n")
        message = json.loads(line)
        if "ok" in message:
            assert isinstance(message, dict)
            return message


class Target:
    """A home with a job that runs, one that waits, one that failed, and one of which nobody saw the end."""

    def __init__(self, live: LiveHome) -> None:
        self.live = live
        self.running = live.run_text("sleep 600")
        live.wait_running(self.running)
        self.waiting = live.submit(
            shell_job("a", "sleep 600"), JobSpec("b", Argv(("true",)), needs=Needs((Need("a"),)))
        )
        live.wait_running(self.waiting + 1)
        self.failed = live.run_text("exit 3")
        live.settle([self.failed])
        pid = live.coordinator()
        assert pid is not None
        self.pid = pid

    def samples(self) -> dict[str, Document]:
        """A request of each operation that is as it should be."""
        live = self.live
        one = shell_job(
            "one", "exit 0", request=Request(time_s=5, mem_bytes=1 << 26), kill_wait_s=1.0, env=(("A", "b"),)
        )
        flow = FlowSpec("poisoned", (one, JobSpec("two", Argv(("true",)), matrix=Matrix((("i", ("1", "2")),)))))
        submission = live.submission(flow)
        with live.reader() as reader:
            again = reader.submission(self.failed)
        assert again is not None
        ids, by = [self.waiting + 2], "tester"
        step = {"name": "true", "args": ["true"], "folder": "/", "limits": [[1, 2]], "is_overlapping": True}
        key = live.attempt(self.running).key
        documents: dict[str, Document] = {
            "ping": {},
            "submit": {"submission": encode(submission), "env": ["PATH=/bin"]},
            "sbatch": {
                "options": [["job-name", "x"], ["time", "5"], ["array", "1-2"]], "script": "#!/bin/sh\n", "name": "x",
                "path": "/x", "args": ["a"], "origin": encode(submission.origin), "env": ["PATH=/bin"],
            },
            "cancel": {"ids": [9999], "by": by, "signal": 10, "scope": "script", "now": False},
            "hold": {"ids": ids, "by": by},
            "release": {"ids": ids, "by": by},
            "suspend": {"ids": ids, "by": by},
            "resume": {"ids": ids, "by": by},
            "accept": {"ids": [self.failed], "by": by},
            "requeue": {"ids": [9999], "by": by, "hold": True},
            "pool_size": {"name": "licence", "size": 2, "by": by},
            "update": {
                "ids": ids, "by": by, "clear": ["time_s"],
                "changes": {
                    "time_s": 60, "priority": 3, "begin_at": 1.0, "dependency": f"afterany:{self.failed}",
                    "throttle": 1, "mem_bytes": 1 << 20, "cpus": 1, "name": "n", "comment": "c", "nice": "1",
                },
            },
            "allocate": {"run": self.waiting, "allocation": {"words": ["-N1"], "count": 1}, "by": by},
            "retry": {"ids": [self.failed], "by": by},
            "reinit": {
                "run": self.failed, "causes": [[self.failed, "changed"]], "flow": encode(again.flow),
                "values": [["sealed:" + "0" * 32, "value"]], "inherit": ["A=b"], "by": by,
            },
            "prune": {"older_than_s": 1e8, "keep_last": 1, "max_bytes": 1 << 40, "dry_run": True, "by": by},
            "watch": {"ids": [self.failed], "foreground": False},
            "own": {"run": 9999},
            "step": {"key": key, "token": "t", "spec": step, "env": ["A=b"]},
            "signal_step": {"key": key, "step": 99, "signal": 10, "by": by},
            "stop": {},
        }  # fmt: skip
        return {op: {"op": op, **document} for op, document in documents.items()}


@pytest.fixture
def target(live: LiveHome) -> Target:
    return Target(live)


@pytest.mark.parametrize("op", sorted(REQUESTS))
def test_every_field_of_every_request_may_be_poisoned(target: Target, op: str) -> None:
    """An answer each, never 70 (a bug), the same coordinator afterwards, and it works."""
    live, sample = target.live, target.samples()[op]
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(_connected(live))
        for number, (path, request) in enumerate(_poisoned(sample)):
            if op == "step" and path[0] != "token":
                request["token"] = f"t{number}"  # the same token is the same step
            answer = _answer(connection, request)
            assert live.coordinator() == target.pid, (path, request)
            assert answer is not None, (path, request)
            assert answer.get("status") != 70, (path, request, answer)
            is_one_line = "\n" not in answer.get("error", "")
            assert is_one_line or op == "sbatch" or answer["status"] == 73, (path, request, answer)
    number = live.run_text("exit 3")
    live.settle([number])
    assert live.job(number).exit == ExitStatus(3)
    assert live.coordinator() == target.pid
    assert os.path.exists(f"/proc/{target.pid}")
    assert "a bug" not in live.home.log.read_text()


def test_samples_are_taken(target: Target) -> None:
    """The requests that are poisoned are right before: each of them is understood."""
    for op, request in target.samples().items():
        if op in ("stop", "allocate"):  # ends it; needs a cluster
            continue
        with _connected(target.live) as connection:
            answer = _answer(connection, request)
        assert answer is not None
        assert answer["ok"] is True, (op, answer)
        if op == "retry":
            target.live.settle([target.failed])


def test_a_step_that_is_refused_is_not_run(target: Target) -> None:
    """Whatever is wrong with the request: nothing of it is begun, and the next step has its number."""
    live, sample = target.live, target.samples()["step"]
    bad: list[Document] = [{"env": ["A=b", 7]}, {"env": "A=b"}, {"env": ["A=\ud800"]}, {"env": ["A=\0"]}, {"more": 1}]
    with _connected(live) as connection, open(os.devnull, "r+b") as null:
        streams = (null.fileno(),) * 3
        for number, change in enumerate(bad):
            spec = {**sample["spec"], "args": ["touch", f"{live.folder}/refused"]}
            answer = _answer(connection, {**sample, "token": f"bad{number}", "spec": spec, **change}, streams)
            assert answer is not None
            assert answer["ok"] is False, change
        taken = _answer(connection, {**sample, "token": "good"}, streams)
        assert taken is not None
        assert (taken["ok"], taken["step"]) == (True, 0)
        ended = b""
        while b"ended" not in ended:
            ended += connection.recv(65536)
    assert not (live.folder / "refused").exists()
