"""The terminal of a job that was started with one (`--pty`): a process in the job that others can attach to.

`python -m aver.cli.terminal.host COMMAND…` runs it on a pseudo-terminal of its own. What the command draws goes
to stdout, which is the job's log, and to everybody who is attached; keys come from them. It ends as the command ended:
with its exit code, or by its signal.

The socket is `terminals/JOB` in the home, which is the user's alone. Clients send frames: a letter (`k`: keys, `s`: the
window's size), the length in four bytes, and the data. They receive the bytes that the command writes, beginning with
the last ones before they came.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterator

from aver.home import Home

KEYS, SIZE = b"k", b"s"
HEAD = struct.Struct("!cI")
KEPT_BYTES = 1 << 16  # of what was drawn, for those who come later
CHUNK_BYTES = 1 << 16
MOST_UNSENT_BYTES = 1 << 20  # somebody who does not read this much is let go
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_OURS = ("-P", "-m", "aver.cli.terminal.host")
WINDOW = struct.pack("HHHH", 24, 80, 0, 0)  # until somebody attaches
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def with_terminal(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command on a terminal that others can attach to."""
    return (sys.executable, *_OURS, *command)


def without_terminal(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command as it was typed."""
    return command[4:] if has_terminal(command) else command


def has_terminal(command: tuple[str, ...]) -> bool:
    return command[1:4] == _OURS


def frame(kind: bytes, data: bytes) -> bytes:
    return HEAD.pack(kind, len(data)) + data


def connect(home: Home, job: int) -> socket.socket | None:
    """The connection to the job's terminal; None if nobody listens there."""
    with contextlib.suppress(OSError), _folder(home) as folder:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(f"{folder}/{job}")
        except OSError:
            connection.close()
        else:
            return connection
    return None


@contextlib.contextmanager
def _folder(home: Home) -> Iterator[str]:
    """A short name of the folder: a socket's path has at most 107 bytes."""
    descriptor = os.open(home.terminals, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


class Viewer:
    """Somebody who is attached."""

    def __init__(self, connection: socket.socket, drawn: bytes) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.unsent = bytearray(drawn)
        self._read = bytearray()

    def fileno(self) -> int:
        return self.connection.fileno()

    def frames(self) -> list[tuple[bytes, bytes]] | None:
        """The frames that have come; None once there will be no more."""
        try:
            data = self.connection.recv(CHUNK_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            return None
        self._read += data
        found = []
        while len(self._read) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._read)
            if kind not in (KEYS, SIZE) or length > CHUNK_BYTES:
                return None
            if len(self._read) < HEAD.size + length:
                break
            found.append((kind, bytes(self._read[HEAD.size : HEAD.size + length])))
            del self._read[: HEAD.size + length]
        return found if data else None

    def send(self) -> bool:
        """Send what can be sent; False once nobody reads."""
        try:
            del self.unsent[: self.connection.send(self.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return len(self.unsent) <= MOST_UNSENT_BYTES


class Host:
    """The command's terminal, and those who look at it."""

    def __init__(self, master: int, listener: socket.socket | None) -> None:
        os.set_blocking(master, False)
        self._master = master
        self._listener = listener
        self._viewers: list[Viewer] = []
        self._drawn = bytearray()
        self._keys = bytearray()
        self._is_open = True

    def copy(self, ended: int) -> None:
        """Copy in all directions until `ended` is readable."""
        while True:
            reading: list[int | socket.socket | Viewer] = [ended, *self._viewers]
            reading += [self._listener] if self._listener is not None else []
            reading += [self._master] if self._is_open else []
            writing: list[int | Viewer] = [viewer for viewer in self._viewers if viewer.unsent]
            writing += [self._master] if self._keys and self._is_open else []
            ready, sendable, _ = select.select(reading, writing, [])
            if self._master in ready:
                self._is_open = self._show()
            if self._master in sendable:
                self._type()
            for viewer in [one for one in self._viewers if one in sendable and not one.send()]:
                self._leave(viewer)
            for viewer in [one for one in self._viewers if one in ready]:
                self._hear(viewer)
            if self._listener is not None and self._listener in ready:
                with contextlib.suppress(OSError):
                    self._viewers.append(Viewer(self._listener.accept()[0], bytes(self._drawn)))
            if ended in ready:
                return

    def close(self) -> None:
        """The command has ended: pass on the rest of what it drew."""
        while self._is_open and self._show():
            pass
        for viewer in list(self._viewers):
            viewer.connection.setblocking(True)
            viewer.connection.settimeout(1.0)
            with contextlib.suppress(OSError):
                viewer.connection.sendall(viewer.unsent)
            self._leave(viewer)

    def _show(self) -> bool:
        """Pass on what the command drew; False where there is no more now."""
        try:
            data = os.read(self._master, CHUNK_BYTES)
        except BlockingIOError:
            return bool(select.select([self._master], [], [], 0)[0])
        except OSError:  # nobody has the other side open
            return False
        rest = data
        with contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(1, rest) :]
        self._drawn = (self._drawn + data)[-KEPT_BYTES:]
        for viewer in self._viewers:
            viewer.unsent += data
        return bool(data)

    def _type(self) -> None:
        try:
            del self._keys[: os.write(self._master, self._keys)]
        except BlockingIOError:
            pass
        except OSError:
            self._keys.clear()

    def _hear(self, viewer: Viewer) -> None:
        import fcntl
        import termios

        frames = viewer.frames()
        for kind, data in frames or ():
            if kind == KEYS:
                self._keys += data
            elif len(data) == 8:  # struct winsize
                with contextlib.suppress(OSError):
                    fcntl.ioctl(self._master, termios.TIOCSWINSZ, data)
        if frames is None:
            self._leave(viewer)

    def _leave(self, viewer: Viewer) -> None:
        if viewer in self._viewers:
            self._viewers.remove(viewer)
            viewer.connection.close()


def main(command: list[str]) -> int:
    import fcntl
    import pty
    import termios

    listener = _listener()
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child, master = pty.fork()
    if child == 0:
        _become(command)
    for number in FORWARDED:
        signal.signal(number, lambda got, _frame: _pass_on(child, got))
    fcntl.ioctl(master, termios.TIOCSWINSZ, WINDOW)
    host = Host(master, listener)
    while True:
        host.copy(woken)
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 256)
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
    host.close()
    if listener is not None:
        with contextlib.suppress(OSError), _folder(Home.find()) as folder:
            os.unlink(f"{folder}/{os.environ['AVER_JOB']}")
    return _end(status)


def _listener() -> socket.socket | None:
    """None, and a line in the log, where nobody will be able to attach: the command runs all the same."""
    home, job = Home.find(), os.environ.get("AVER_JOB", "")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.makedirs(home.terminals, mode=0o700, exist_ok=True)
        with _folder(home) as folder:
            with contextlib.suppress(FileNotFoundError):  # of an earlier attempt
                os.unlink(f"{folder}/{job}")
            listener.bind(f"{folder}/{job}")
    except OSError as error:
        listener.close()
        print(f"aver: nobody can attach to this terminal: {error.strerror}", file=sys.stderr, flush=True)
        return None
    listener.listen()
    return listener


def _become(command: list[str]) -> None:
    """In the child: the command, or the status that a shell gives for one that can't be started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE)


def _pass_on(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, number)


def _end(status: int) -> int:
    """End as the command ended."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    import resource

    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core, if any, is the command's
    with contextlib.suppress(OSError, ValueError):  # KILL has no handler
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 + number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
