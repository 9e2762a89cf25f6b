"""Talking to the coordinator with as few imports as can be: a step should cost little more than its process.

JSON through the interpreter's own C scanner, sockets through `_socket`. For `srun` inside a job; everything
else uses `aver.protocol.client`.
"""

from __future__ import annotations

import os

from aver.errors import UsageError
from aver.fast_start import TYPE_CHECKING, c_json, c_signal, c_socket
from aver.ownership import check_home, check_peer
from aver.protocol.place import has_other_version

if TYPE_CHECKING:
    from typing import Any

_SCM_RIGHTS = 1


def outlive_own_job() -> None:
    """Inside a job, let TERM pass: who ends or requeues the job it is part of is to hear that this was done.

    KILL follows after the kill wait.
    """
    if os.environ.get("SLURM_JOB_ID"):
        c_signal.signal(c_signal.SIGTERM, c_signal.SIG_IGN)


class Lost(Exception):
    """The coordinator is gone, or was never there."""


class _Context:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None


_scan = c_json.make_scanner(_Context())  # type: ignore[arg-type]


def dumps(value: Any) -> str:
    """Plain ASCII JSON of dicts, lists, texts, numbers, booleans and None."""
    if isinstance(value, str):
        return str(c_json.encode_basestring_ascii(value))
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{dumps(str(name))}:{dumps(one)}" for name, one in value.items()]) + "}"
    return "[" + ",".join([dumps(one) for one in value]) + "]"


def loads(line: bytes) -> dict[str, Any]:
    try:
        value, _ = _scan(line.decode("ascii"), 0)
    except (StopIteration, ValueError) as error:
        raise Lost(f"the coordinator's answer can't be read: {error}") from None
    if not isinstance(value, dict):
        raise Lost("the coordinator's answer is not an object")
    return value


class Wire:
    """One connection to the coordinator of a home."""

    def __init__(self, connected: c_socket.socket) -> None:
        self._socket = connected
        self._received = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, request: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        data = dumps(request).encode("ascii") + b"\n"
        try:
            if descriptors:
                packed = b"".join(one.to_bytes(4, "little") for one in descriptors)
                sent = self._socket.sendmsg([data], [(c_socket.SOL_SOCKET, _SCM_RIGHTS, packed)])
                data = data[sent:]
            if data:
                self._socket.sendall(data)
        except OSError as error:
            raise Lost(str(error)) from None

    def receive(self) -> dict[str, Any]:
        """The next message; Lost when there is nobody any more."""
        while b"\n" not in self._received:
            try:
                data = self._socket.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                raise Lost("the coordinator ended")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return loads(line)

    def has_message(self) -> bool:
        return b"\n" in self._received

    def close(self) -> None:
        self._socket.close()


def adopt(descriptor: int) -> Wire:
    """The connection that the program before us had opened and checked."""
    os.set_inheritable(descriptor, False)
    return Wire(c_socket.socket(fileno=descriptor))


def connect(home: str) -> Wire:
    """Connect; where nobody answers, or an older version does, a coordinator is started as every command does.

    UsageError as `open_wire`.
    """
    try:
        wire = open_wire(home)
        if not has_other_version(home):
            return wire
        wire.close()
    except OSError:
        pass
    from pathlib import Path

    from aver.home import Home
    from aver.protocol.client import Client

    Client.connect(Home(Path(home))).close()
    try:
        return open_wire(home)
    except OSError as error:
        raise Lost(str(error)) from None


def open_wire(home: str) -> Wire:
    """Connect to who answers; OSError if nobody does, UsageError if the home, or who answers, is another user's."""
    check_home(home)
    folder_fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    connected = c_socket.socket(c_socket.AF_UNIX, c_socket.SOCK_STREAM | c_socket.SOCK_CLOEXEC)
    try:
        connected.connect(f"/proc/self/fd/{folder_fd}/sock")
        check_peer(connected.getsockopt(c_socket.SOL_SOCKET, c_socket.SO_PEERCRED, 12), home)
    except (OSError, UsageError):
        connected.close()
        raise
    finally:
        os.close(folder_fd)
    return Wire(connected)
