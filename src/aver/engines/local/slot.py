"""One witness and the connection to it.

A slot is a number in the home's `witness` folder: `N.sock`, on which the witness listens,
and `N.log`, its journal. Attaching to a witness that runs already and to a new one are the
same thing. Both files may be taken away: the witness has them open, and is reached through that.
What the journal says and what the connection says are the same lines; `read_offset`
is how much of the journal is known, so each line is heard once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import select
import socket
import time
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aver.engines.api import Order
from aver.engines.local.census import JOURNAL_FD, SOCKET_FILE_FD, is_witness_of
from aver.log import log
from aver.model.codec import parse_object
from aver.model.evidence import MemoryWatch, WitnessStart
from aver.ownership import make_folder

FIRST_FREE_FD = SOCKET_FILE_FD + 1  # those below are the witness's
HEADER_BYTES = 18  # length, space, sum, space
LINE_BEGIN = b'{"ev":'
RECEIVE_BYTES = 1 << 18
DEFAULT_KILL_WAIT_S = 30.0
_TAIL = re.compile(r',(?:"over":[0-9.]+,)?"size": *[0-9]+}\Z')
_KEY = re.compile(r"(?!\.)[!#-.0-\[\]-~]{1,128}")  # docs/design/witness.md
MOST_AHEAD = 64  # orders that wait in one witness: AHEAD of witness.c
PATIENCE_S = 0.1  # for which they wait: PATIENCE of witness.c
MOST_UNTRUNCATED = 500  # orders in one journal
BACKLOG = 1024  # a witness that is stopped keeps the connections of every coordinator that came and went


class Ahead(NamedTuple):
    """An order that waits in the witness, the witness's cgroup, and the CPUs that it has from the one before it."""

    order: Order
    of_witness: str
    cpus: str


class Launch(NamedTuple):
    """What a witness starts if its coordinator dies: the home, then the words of the program. Empty: nothing."""

    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


class Slot:
    """A witness that we are connected to, one that lives and can't be reached (`process`), or the journal of one that
    is gone."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self._folder = folder
        self.socket_path = folder / f"{number}.sock"
        self.journal_path = folder / f"{number}.log"
        self.connection: socket.socket | None = None
        self.process: int | None = None  # a pidfd, readable at the witness's end
        self._journal_fd: int | None = None  # where the journal has lost its name
        self.is_damaged = False  # the journal has a line that no witness writes
        self.key: str | None = None  # what runs in it, as far as we know
        self.order: Order | None = None  # the order of that key, if it was ours
        self.has_begun = False  # its beginning is in the journal, or its start was said
        self.ahead: deque[Ahead] = deque()  # orders that begin when those before them have ended
        self.has_room_untold = False  # what runs in it has the room of the one before it, and nobody was told
        self.untruncated = 0  # orders since its journal was cut off last
        self.has_said_hello = False
        self.is_of_earlier_version = False  # as its hello shows
        self.ended: set[str] = set()  # keys whose end is in the journal and was heard
        self.cut_off: set[str] = set()  # the same, in the part that the witness was told to cut off
        self.job_pid: int | None = None
        self.warm: tuple[str, ...] = ()  # the server that it has: that of its last order
        self.cgroup_name: str | None = None  # of the witness's own, once it has had an order
        self.job_cgroup: str | None = None  # the outermost of the job's own, empty: it has none; None: not said yet
        self.kept_cgroup = ""  # the last of these, which the witness may have kept
        self.given_at = 0.0  # its order, by the monotonic clock, as the next two
        self.due_s: float | None = None  # when its time limit passes, as its witness says
        self.cancelled_at: float | None = None
        self.kill_wait_s = DEFAULT_KILL_WAIT_S  # of what runs in it, by its order or as its witness says
        self.is_told_starting = False
        self.is_told_stuck = False
        self.watch = MemoryWatch.NONE  # of the memory of what runs in it
        self.job_started_at = 0.0
        self.witness_pid: int | None = None
        self.is_ours = False  # our own child, to be reaped
        self.read_offset = 0
        self.durable_offset = 0
        self.idle_since = 0.0
        self.unsettled: set[str] = set()  # ends that are heard and not yet durable in the store
        self._received = b""
        self._gathered: list[tuple[bytes, tuple[int, ...]]] = []  # frames, with duplicates of descriptors
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()  # the same, joined where they may be
        self._mask = select.EPOLLIN  # of what its connection is polled for

    def take(self, order: Order, of_witness: str) -> None:
        """The order is the one that it runs next, or runs."""
        self.key, self.order, self.has_begun = order.key, order, False
        self.given_at, self.due_s, self.cancelled_at = time.monotonic(), None, None
        self.is_told_starting = self.is_told_stuck = False
        self.job_pid, self.job_cgroup, self.kill_wait_s = None, None, order.kill_wait_s
        self.cgroup_name, self.warm = of_witness, order.warm
        self.untruncated += 1

    def note_start(self, start: WitnessStart, outer: object) -> None:
        """What it was given has begun, in this cgroup of its own."""
        self.note_cgroup(outer)
        self.job_pid, self.job_started_at, self.witness_pid = start.pid, start.at, start.witness_pid
        self.watch, self.due_s = start.watch, start.due_s
        self.has_begun = True
        self.has_room_untold = False
        self.cut_off.clear()

    def note_cgroup(self, outer: object) -> None:
        """What runs in it has this cgroup of its own, or has none; ValueError if no cgroup has such a name."""
        if not isinstance(outer, str) or "/" in outer or outer.startswith("."):
            raise ValueError("no name of a cgroup")
        self.job_cgroup, self.kept_cgroup = outer, outer or self.kept_cgroup

    def note_damage(self, line: bytes) -> None:
        """It has a line that no witness writes: said once, and never evidence."""
        if not self.is_damaged:
            self.is_damaged = True
            log(f"witness {self.number} has a line that no witness writes, and it is passed over: {line[:200]!r}")

    def is_end(self, line: bytes) -> bool:
        """Whether this is the end of what runs in it, whatever else it says."""
        return self.key is not None and line.startswith(b'{"ev":"end","key":"%s"' % self.key.encode())

    def is_over(self, line: bytes, following: bytes) -> bool:
        """Whether this is the start of a flow's job that runs in it, and the next line the end of that.

        A job alone has both: somebody looks at it.
        """
        if self.key is None or self.order is None or not self.order.lane or not self.is_end(following):
            return False
        if not line.startswith(b'{"ev":"start","key":"%s"' % self.key.encode()):
            return False
        if b'"in":' in line:
            try:
                self.note_cgroup(words_of(line).get("in"))
            except ValueError:
                return False
        self.cut_off.clear()
        return True

    def note_loss(self) -> None:
        """What ran in it has ended, and nobody will ever say how: its journal is kept."""
        self.is_damaged = True
        log(f"witness {self.number} has ended {self.key}, and said no end of it that can be read")

    def may_take_behind(self, order: Order) -> bool:
        """Whether the order may begin when what runs here has ended: it is like that one, which has not run long."""
        before = self.order
        return (
            self.key is not None and before is not None and before.lane == order.lane and self.connection is not None
            and self.has_said_hello and not self.is_of_earlier_version and self.cancelled_at is None
            and len(self.ahead) < MOST_AHEAD and self.untruncated < MOST_UNTRUNCATED and not self._unsent
            and time.monotonic() - self.given_at < PATIENCE_S / 2
        )  # fmt: skip

    def start(self, binary: str, folder_fd: int, launch: Launch = Launch()) -> None:
        """Start a new witness and connect to it; OSError if that can't be done."""
        journal_fd = _high(os.open(self.journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600))
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(f"/proc/self/fd/{folder_fd}/{self.socket_path.name}")
                listener.listen(BACKLOG)
                listener_fd = fcntl.fcntl(listener, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD)
                path = f"/proc/self/fd/{folder_fd}/{self.socket_path.name}"
                file_fd = _high(os.open(path, os.O_PATH | os.O_CLOEXEC))
                try:
                    actions = [
                        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
                        (os.POSIX_SPAWN_DUP2, 0, 1),
                        (os.POSIX_SPAWN_DUP2, 0, 2),
                        (os.POSIX_SPAWN_DUP2, listener_fd, 3),
                        (os.POSIX_SPAWN_DUP2, journal_fd, JOURNAL_FD),
                        (os.POSIX_SPAWN_DUP2, file_fd, SOCKET_FILE_FD),
                    ]
                    words = [binary, "slot", *launch.words]
                    self.witness_pid = os.posix_spawn(
                        binary, words, launch.environment, file_actions=actions, setsid=True
                    )
                finally:
                    os.close(listener_fd)
                    os.close(file_fd)
        finally:
            os.close(journal_fd)
        self.is_ours = True
        if not self.connect(folder_fd):
            raise OSError(errno.ECONNREFUSED, "the witness ended at once")

    def connect(self, folder_fd: int) -> bool:
        """Connect to the witness; False if nobody can be reached."""
        self.connection = _connect(f"/proc/self/fd/{folder_fd}/{self.socket_path.name}")
        return self.connection is not None

    def attach(self, folder_fd: int, witness: int | None) -> None:
        """Connect to a witness that may live; `witness` is the process that has the slot's journal open, if any.

        One that lives and can't be reached is watched as a process: it goes on, and its journal says how it went.
        """
        if self.connect(folder_fd) or witness is None:
            self._keep_journal(witness)
            return
        try:
            process = os.pidfd_open(witness)
        except OSError:
            return
        if not is_witness_of(witness, self.number, self._folder):  # it has ended, and the number is another's
            os.close(process)
            return
        self._keep_journal(witness)
        self.connection = _connect(f"/proc/{witness}/fd/{SOCKET_FILE_FD}")
        if self.connection is not None:
            os.close(process)
        else:
            self.process, self.witness_pid, self.has_said_hello = process, witness, True

    def _keep_journal(self, witness: int | None) -> None:
        """Open the journal through the witness if it has lost its name; who is gone takes it along."""
        if witness is None or self.journal_path.exists():
            return
        with contextlib.suppress(OSError):
            self._journal_fd = os.open(f"/proc/{witness}/fd/{JOURNAL_FD}", os.O_RDONLY | os.O_CLOEXEC)

    def fileno(self) -> int:
        """What is readable when the witness says something, or ends; -1 for one that is gone."""
        if self.connection is not None:
            return self.connection.fileno()
        return -1 if self.process is None else self.process

    def send(self, frame: bytes, poller: select.epoll) -> None:
        """Send, now or when the witness reads on. A broken connection is noticed by `receive`."""
        self.gather(frame)
        self.flush(poller)

    def gather(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Send it with the next `flush`, so that the witness wakes once for several frames.

        The descriptors stay the caller's. OSError if they can't be sent.
        """
        self._gathered.append((frame, _duplicates(fds)))

    def flush(self, poller: select.epoll) -> None:
        plain = [frame for frame, fds in self._gathered if not fds]
        with_fds = [one for one in self._gathered if one[1]]
        self._unsent.extend([*with_fds, (b"".join(plain), ())] if plain else with_fds)
        self._gathered.clear()
        if self.connection is None:
            return
        while self._unsent:
            frame, fds = self._unsent[0]
            try:
                sent = socket.send_fds(self.connection, [frame], fds) if fds else self.connection.send(frame)
            except BlockingIOError:
                break
            except OSError:
                self._drop_unsent()
                break
            _close(fds)
            if sent < len(frame):
                self._unsent[0] = (frame[sent:], ())
                break
            self._unsent.popleft()
        mask = select.EPOLLIN | select.EPOLLOUT if self._unsent else select.EPOLLIN
        if mask != self._mask:
            poller.modify(self.connection, mask)
            self._mask = mask

    def _drop_unsent(self) -> None:
        for _, fds in (*self._unsent, *self._gathered):
            _close(fds)
        self._unsent.clear()
        self._gathered.clear()

    def receive(self) -> tuple[list[bytes], bool]:
        """Return the whole lines' JSON that have come, and whether the witness is still there."""
        if self.connection is None:
            return [], False
        alive = True
        try:
            data = self.connection.recv(RECEIVE_BYTES)
            alive = bool(data)
        except BlockingIOError:
            return [], True
        except OSError:
            data, alive = b"", False
        lines, self._received, _ = split_lines(self._received + data)
        return lines, alive

    def read_journal(self) -> list[bytes] | None:
        """Return the journal's lines that are not known yet; None: it can't be read now."""
        try:
            if self._journal_fd is None:
                with open(self.journal_path, "rb") as file:
                    file.seek(self.read_offset)
                    data = file.read()
            else:
                size = os.fstat(self._journal_fd).st_size
                data = os.pread(self._journal_fd, max(0, size - self.read_offset), self.read_offset)
        except OSError:
            return None  # what can't be read is no evidence
        lines, _, used = split_lines(data)
        self.read_offset += used
        return lines

    def is_witness(self) -> bool:
        """Whether the process that the witness said it is has this slot's journal open."""
        return self.witness_pid is not None and is_witness_of(self.witness_pid, self.number, self._folder)

    def disconnect(self) -> None:
        self._drop_unsent()
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        if self.process is not None:
            os.close(self.process)
            self.process = None

    def remove_files(self) -> None:
        if self._journal_fd is not None:
            os.close(self._journal_fd)
            self._journal_fd = None
        with contextlib.suppress(OSError):
            self.socket_path.unlink()
        with contextlib.suppress(OSError):
            if not self.is_damaged:
                self.journal_path.unlink()
                return
            aside = self.journal_path.with_suffix(".log.damaged")
            self.journal_path.replace(aside)
            log(f"a journal with lines that no witness writes is set aside: {aside}")


def restore_folder(folder: Path, folder_fd: int) -> None:
    """Let the descriptor be that of the folder that is there now: the old one may have been removed while empty."""
    make_folder(os.fspath(folder))
    new_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.dup2(new_fd, folder_fd, inheritable=False)
    os.close(new_fd)


def take_idle(idle: list[Slot], order: Order) -> Slot | None:
    """Take the one whose server can fork the order, if there is one; else the last one.

    One whose journal is long is left alone until all that is in it is durable: then the next order cuts it off.
    """
    usable = [number for number, slot in enumerate(idle) if slot.untruncated < MOST_UNTRUNCATED or not slot.unsettled]
    alike = [number for number in usable if idle[number].warm == order.warm]
    return idle.pop((alike or usable)[-1]) if usable else None


def take_behind(slots: Iterable[Slot], order: Order) -> Slot | None:
    """The one that has the fewest orders of those in which it may begin when one of its lane has ended."""
    usable = (slot for slot in slots if slot.may_take_behind(order))
    return min(usable, key=lambda slot: len(slot.ahead), default=None)


def _connect(path: str) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.setblocking(False)
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection


def split_lines(data: bytes) -> tuple[list[bytes], bytes, int]:
    """Split checked lines off: their JSON, what is left over, and how many bytes were used up.

    A line whose length or sum does not fit is not a line: it is passed over. If a whole line ends it, as after
    half a line of something else, that one counts.
    """
    lines: list[bytes] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        header, body = data[position : position + HEADER_BYTES], data[position + HEADER_BYTES : end]
        is_line = _fits(header, body)
        if not is_line:
            begin = max(data.rfind(LINE_BEGIN, position, end), position + HEADER_BYTES)
            header, body = data[begin - HEADER_BYTES : begin], data[begin:end]
            is_line = _fits(header, body)
        if is_line:
            lines.append(body)
        position = end + 1
    return lines, data[position:], position


def _fits(header: bytes, body: bytes) -> bool:
    try:
        length, total = int(header[0:8], 16), int(header[9:17], 16)
    except ValueError:
        return False
    return length == len(body) and total == zlib.crc32(body)


def _high(fd: int) -> int:
    """Move a descriptor out of the way of those that a witness gets."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD)
    finally:
        os.close(fd)


def _duplicates(fds: Sequence[int]) -> tuple[int, ...]:
    """Duplicate all of them; OSError, and nothing is left open, if one can't be."""
    copies: list[int] = []
    try:
        for fd in fds:
            copies.append(os.dup(fd))
    except OSError:
        _close(copies)
        raise
    return tuple(copies)


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def without_tail(text: str) -> str:
    """An end line as evidence. Any other text stays whole.

    What comes last is left out: when it ended by a clock that only this boot has, and its place in the journal.
    """
    return _TAIL.sub("}", text)


def words_of(line: bytes) -> dict[str, Any]:
    """The words of a line; ValueError if no witness can have written them."""
    words = parse_object(line)
    if not isinstance(words.get("ev"), str):
        raise ValueError("it is not a line of a witness")
    key = words.get("key")
    if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise ValueError("its key is none")
    if not isinstance(words.get("cpus", ""), str):
        raise ValueError("its cpus are not a list")
    for name in ("pid", "witness", "journal"):
        if words.get(name) is not None and not (type(words[name]) is int and words[name] >= 0):
            raise ValueError(f"its {name} is not a number")
    return words
