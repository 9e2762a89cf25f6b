"""The way to the coordinator for everybody else: connect, starting one if none is there, and ask.

Imports little: every command pays for it. A coordinator that can't start, or that dies while
somebody waits, is an UnreachableError at once, with the last line of its log.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aver.errors import AverError, CantWriteError, InternalError, UnreachableError, UsageError
from aver.home import Home
from aver.launch import coordinator_command, coordinator_environment
from aver.ownership import check_peer
from aver.protocol.place import has_other_version
from aver.version import __version__

if TYPE_CHECKING:
    from aver.model.record import Record
    from aver.protocol.messages import Request

Reply = TypeVar("Reply", bound="Record")

START_TIMEOUT_S = 120.0  # one that dies is noticed at once; a slow machine takes long to import
CONNECT_TRIES = 5
BUSY_PAUSE_S = 0.05
REPLY_TIMEOUT_S = 120.0
STOP_WAIT_S = 30.0
LOG_TAIL_BYTES = 4096
GATHER_S = 0.02  # changes that come within this time are shown together: a person sees no difference
RECEIVE_BYTES = 1 << 16  # a larger buffer would be mapped anew for each line
LOOK_S = 1.0  # a wait is cut into such pieces: Python hears a signal only between them, or inside one


class AnswerLost(UnreachableError):
    """The request was sent, and nobody knows whether it was carried out."""


class Change(NamedTuple):
    """What a watcher is told: jobs that have changed, and watched numbers that are settled now."""

    changed: tuple[int, ...]
    settled: tuple[int, ...]


class Client:
    """One connection to the coordinator of a home."""

    def __init__(self, home: Home, connection: socket.socket) -> None:
        self._home = home
        self._connection = connection
        self._received = b""
        self._newer = ""  # the coordinator's version, if it is newer than ours

    @classmethod
    def connect(cls, home: Home, *, start: bool = True) -> Client:
        """Return a connection; start a coordinator if none answers and `start` says so.

        A coordinator of an earlier version does not understand what we ask: with `start` it is told to leave, and one
        of ours takes up its jobs, which run on meanwhile. One of a later version stays; what it refuses says so.
        UsageError if the home, or who answers in it, is another user's: before anything is sent.
        """
        home.check()
        connection = _open(home)
        newer = ""
        if start and connection is not None and has_other_version(os.fspath(home.path)):
            newer = str(home.holder().get("version", ""))
            if _release(newer) < _release(__version__):
                newer = ""
                with contextlib.suppress(AnswerLost):  # another command told it so as well
                    cls(home, connection).end_coordinator()
                connection = _open(home)
        deadline = time.monotonic() + START_TIMEOUT_S
        tries = CONNECT_TRIES if start else 0
        while connection is None and tries > 0 and time.monotonic() < deadline:
            if _start(home):
                tries -= 1
            else:
                time.sleep(BUSY_PAUSE_S)  # another one holds the lock: it begins to listen soon, or is about to leave
            connection = _open(home)
        if connection is not None:
            client = cls(home, connection)
            client._newer = newer
            return client
        raise UnreachableError(f"no coordinator answers in {home.path}{_last_words(home)}")

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()

    def process(self) -> int | None:
        """A descriptor of the coordinator's process, readable at its end; None where that can't be seen from here."""
        credentials = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        with contextlib.suppress(OSError):
            return os.pidfd_open(int.from_bytes(credentials[:4], sys.byteorder))
        return None

    def end_coordinator(self) -> None:
        """Tell the coordinator to leave, and wait for its end: what it had open is closed then. Jobs run on."""
        process = self.process()
        try:
            self.call("stop")
            self.close()
            if process is not None and not select.select([process], [], [], STOP_WAIT_S)[0]:
                raise UnreachableError(f"the coordinator was told to stop and has not ended yet: see {self._home.log}")
        finally:
            if process is not None:
                os.close(process)

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Ask, and return the reply; what the coordinator refuses is raised as its error."""
        self._send({"op": op, **arguments})
        while True:
            try:
                reply = self._line(REPLY_TIMEOUT_S)
            except TimeoutError:
                raise AnswerLost(
                    f"the coordinator has not answered for {REPLY_TIMEOUT_S:.0f} s{_last_words(self._home)}"
                ) from None
            if "ok" in reply:
                break
        if reply["ok"] is not True:
            raise _error(reply, self._other_version())
        return reply

    def ask(self, request: Request, kind: type[Reply]) -> Reply:
        """Send the request, and return its reply, of the type that OPERATIONS has for it."""
        from aver.protocol.decode import decode_reply  # who only reads the store does not need it
        from aver.protocol.messages import request_document

        reply = self.call(**request_document(request))
        try:
            return decode_reply(kind, reply)
        except AverError as error:
            raise type(error)(f"{error}{self._other_version()}") from None

    def _other_version(self) -> str:
        """What to add to an error: the coordinator is newer than this command."""
        if not self._newer:
            return ""
        return f" (the coordinator is Aver {self._newer}, this is {__version__}: use that one, or `aver stop` first)"

    def watch(
        self, ids: Sequence[int], timeout_s: float | None = None, *, foreground: bool = False
    ) -> Iterator[Change]:
        """Yield changes as they are pushed, until all of `ids` are settled; TimeoutError after `timeout_s`.

        With `foreground`, a run counts as settled when its foreground jobs are.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        settled = self.begin_watch(ids, foreground=foreground)
        waiting = set(ids) - set(settled)
        yield Change((), settled)
        while waiting:
            change = self.next_change(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if change is None:
                raise TimeoutError
            waiting -= set(change.settled)
            if waiting:
                change = self._gathered(change, waiting)
                waiting -= set(change.settled)
            yield change

    def _gathered(self, first: Change, waiting: set[int]) -> Change:
        """This change, and those that come soon after it, as one: who shows many reads the store once.

        Nothing is waited for once all is settled.
        """
        changed, settled = dict.fromkeys(first.changed), dict.fromkeys(first.settled)
        end = time.monotonic() + GATHER_S
        while waiting - settled.keys() and (left_s := end - time.monotonic()) > 0:
            change = self.next_change(left_s)
            if change is None:
                break
            changed.update(dict.fromkeys(change.changed))
            settled.update(dict.fromkeys(change.settled))
        return Change(tuple(changed), tuple(settled))

    def begin_watch(self, ids: Sequence[int], *, foreground: bool = False) -> tuple[int, ...]:
        """Have changes of these pushed, and of nothing else; return those that are settled already."""
        return tuple(self.call("watch", ids=list(ids), foreground=foreground)["settled"])

    def next_change(self, timeout_s: float | None) -> Change | None:
        """The next change that is pushed; None if there is none within the time."""
        try:
            push = self._line(timeout_s)
        except TimeoutError:
            return None
        if push.get("ok") is False:
            raise _error(push)
        return Change(tuple(push.get("changed", ())), tuple(push.get("settled", ())))

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(request).encode("ascii") + b"\n")
        except OSError:
            raise (self._refusal() or self._lost()) from None

    def _line(self, timeout_s: float | None) -> dict[str, Any]:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while b"\n" not in self._received:
            remaining = LOOK_S if deadline is None else min(LOOK_S, max(0.0, deadline - time.monotonic()))
            ready, _, _ = select.select([self._connection], [], [], remaining)
            if not ready:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError
                continue  # no answer yet; a signal that came just before the select is heard here
            try:
                data = self._connection.recv(RECEIVE_BYTES)
            except OSError:
                data = b""
            if not data:
                raise self._lost()
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise InternalError("the coordinator's answer is not a JSON object")
        return value

    def _refusal(self) -> AverError | None:
        """The refusal that the coordinator may have sent before hanging up: it says more than a lost connection."""
        try:
            reply = self._line(1.0)
        except (AverError, TimeoutError):
            return None
        return _error(reply) if reply.get("ok") is False else None

    def _lost(self) -> UnreachableError:
        return AnswerLost(
            f"the coordinator ended while this waited{_last_words(self._home)}; "
            "jobs that run go on, and the next command starts it again"
        )


def _open(home: Home) -> socket.socket | None:
    """Connect to the socket; None if nobody listens there. The path is short whatever the home's is.

    UsageError if who listens is another user.
    """
    try:
        folder_fd = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder_fd}/sock")
    except OSError:
        connection.close()
        return None
    finally:
        os.close(folder_fd)
    try:
        check_peer(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12), os.fspath(home.path))
    except UsageError:
        connection.close()
        raise
    return connection


def _start(home: Home) -> bool:
    """Start a coordinator and wait until it is ready; False if another one holds the lock."""
    home.prepare()
    read_fd, write_fd = os.pipe()
    try:
        path = os.fspath(home.path)
        command = [*coordinator_command(path), str(write_fd)]
        os.set_inheritable(write_fd, True)
        pid = os.posix_spawn(command[0], command, coordinator_environment(), setsid=True)
    except OSError as error:
        os.close(read_fd)
        raise UnreachableError(f"can't start the coordinator: {error.strerror}") from None
    finally:
        os.close(write_fd)
    answer = _read_all(read_fd, START_TIMEOUT_S)
    os.close(read_fd)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)  # it has left its own child behind
    word, _, text = answer.partition(" ")
    if word in ("ready", "busy"):
        return word == "ready"
    if word == "error":
        status, _, sentence = text.partition(" ")
        raise _error({"error": sentence, "status": int(status) if status.isdigit() else 69})
    raise UnreachableError(f"the coordinator could not start{_last_words(home)}")


def _read_all(fd: int, timeout_s: float) -> str:
    deadline = time.monotonic() + timeout_s
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        more = os.read(fd, 4096)
        if not more:
            break
        data += more
    return data.decode("utf-8", "replace").strip()


def _last_words(home: Home) -> str:
    """The last line of the coordinator's log, to put into a sentence."""
    try:
        with open(home.log, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LOG_TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return f" (its log ends: {lines[-1]})" if lines else ""


def _release(version: str) -> tuple[int, ...]:
    """A version in an order; one that is not said comes before all others."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _error(reply: dict[str, Any], explanation: str = "") -> AverError:
    text = str(reply.get("error", "refused without a reason")) + explanation
    match reply.get("status"):
        case 2:
            return UsageError(text)
        case 73:
            return CantWriteError(text)
        case 70:
            return InternalError(text)
        case _:
            return UnreachableError(text)
