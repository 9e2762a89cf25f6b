"""Drives a real witness: starts it, sends orders, reads its lines. What it reads is checked for length and sum."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Line = dict[str, Any]
StartSlot = Callable[..., "Slot"]
DEADLINE_S = 20.0
IS_ROOT = os.geteuid() == 0
IN_BETWEEN = ("due", "limit", "suspended", "resumed")
CGROUP1 = Path("/sys/fs/cgroup/memory")


def until(predicate: Callable[[], Any], deadline_s: float = DEADLINE_S) -> Any:
    """Poll until the predicate gives something true; fail with the last thing that it gave."""
    end = time.monotonic() + deadline_s
    while not (seen := predicate()):
        if time.monotonic() > end:
            pytest.fail(f"not so within {deadline_s:g} s; last seen: {seen!r}")
        time.sleep(0.005)
    return seen


def frame(*fields: str) -> bytes:
    body = b"".join(os.fsencode(field) + b"\0" for field in fields)
    return struct.pack("<I", len(body)) + body


def check_line(line: bytes) -> Line:
    """Return the JSON of one line; fail if length or sum does not fit."""
    body = line[18:]
    assert line[:18] == b"%08x %08x " % (len(body), zlib.crc32(body)), line
    words = json.loads(body)
    assert isinstance(words, dict)
    return words


def read_lines(path: Path) -> list[Line]:
    return [check_line(line) for line in path.read_bytes().splitlines()]


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


class Slot:
    """A slot witness with its socket and journal in a folder of its own."""

    def __init__(self, binary: Path, folder: Path, prepare: Callable[[], None] | None = None) -> None:
        self.folder = folder
        self.journal = folder / "journal"
        self.connection: socket.socket | None = None
        self._rest = b""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder_fd = os.open(folder, os.O_PATH)
        self._address = f"/proc/self/fd/{folder_fd}/sock"
        self._folder_fd = folder_fd
        listener.bind(self._address)
        listener.listen(4)
        journal = os.open(self.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (listener.fileno(), journal)]

        def before_exec() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            if prepare:
                prepare()

        self.process = subprocess.Popen(
            [str(binary), "slot"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "stderr").open("wb"),
            close_fds=False,
            start_new_session=True,
            restore_signals=False,
            preexec_fn=before_exec,
            env=os.environ,
        )
        for fd in (*high, journal):
            os.close(fd)
        listener.close()

    def connect(self) -> Line:
        """Connect and return the hello line."""
        self.disconnect()
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.settimeout(DEADLINE_S)
        self.connection.connect(self._address)
        self._rest = b""
        return self.expect("hello")

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def send(self, *fields: str) -> None:
        self.send_raw(frame(*fields))

    def send_fds(self, fds: list[int], *fields: str) -> None:
        self.send_fds_raw(fds, frame(*fields))

    def send_fds_raw(self, fds: list[int], data: bytes) -> None:
        assert self.connection is not None
        socket.send_fds(self.connection, [data], fds)

    def descriptors(self) -> set[str]:
        """The witness's own open descriptors."""
        return set(os.listdir(f"/proc/{self.process.pid}/fd"))

    def send_raw(self, data: bytes) -> None:
        assert self.connection is not None
        self.connection.sendall(data)

    def next_line(self) -> Line:
        assert self.connection is not None
        while b"\n" not in self._rest:
            data = self.connection.recv(65536)
            assert data, f"the witness hung up; it said {(self.folder / 'stderr').read_text()!r}"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return check_line(line)

    def expect(self, event: str) -> Line:
        """The next line, which is of this kind; what is said in between is passed over if it is not asked for."""
        line = self.next_line()
        while line["ev"] != event and line["ev"] in IN_BETWEEN:
            line = self.next_line()
        assert line["ev"] == event, line
        return line

    def start(self, key: str, *fields: str) -> Line:
        """Order a run and return its start line."""
        if self.connection is None:
            self.connect()
        self.send("R", "k" + key, *fields)
        return self.expect("start")

    def run(self, key: str, *fields: str) -> Line:
        """Order a run that can start, and return its end line."""
        self.start(key, *fields)
        return self.expect("end")

    def fail(self, key: str, *fields: str) -> Line:
        """Order a run that can't start, and return its end line."""
        if self.connection is None:
            self.connect()
        self.send("R", "k" + key, *fields)
        return self.expect("end")

    def sh(self, key: str, script: str, *fields: str) -> Line:
        return self.run(key, *fields, *sh(script))

    def lines(self) -> list[Line]:
        return read_lines(self.journal)

    def close(self) -> None:
        """End the witness and its job, and fail if a sanitizer complained."""
        self.disconnect()
        if self.process.poll() is None:
            self._end()
        os.close(self._folder_fd)
        said = (self.folder / "stderr").read_text(errors="replace")
        assert not said, said

    def _end(self) -> None:
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                hello = self.connect()
                if hello["key"] is not None:
                    self.send("S", "k" + hello["key"], "s9", "ca")
                self.disconnect()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            pytest.fail("the witness did not leave when nobody was connected and nothing ran")


def sh(script: str) -> tuple[str, str, str]:
    """The argument fields that run a bash script."""
    return ("abash", "a-c", "a" + script)


def hog(mib: int, then: str = "") -> tuple[str, ...]:
    """Arguments of a program that takes so much memory, says so, and stays."""
    text = f"import sys, time\nx = bytearray({mib} << 20)\nprint('ready', flush=True)\n{then or 'time.sleep(60)'}"
    return ("a" + sys.executable, "a-I", "a-S", "a-c", "a" + text)


def sig(line: Line) -> tuple[int, int]:
    """The end line's status as (code, signal)."""
    raw = line["raw"]
    return (raw >> 8, 0) if os.WIFEXITED(raw) else (0, os.WTERMSIG(raw))


def acts(line: Line) -> list[tuple[str, int]]:
    return [(act["act"], act["sig"]) for act in line["acts"]]
