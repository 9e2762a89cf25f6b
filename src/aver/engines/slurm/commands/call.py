"""How one of Slurm's commands is called: which words, in which environment, for how long.

Argument lists only. Every call ends: at its time limit its whole process group is killed and reaped. What it prints is
bounded. The environment has what the commands need and none of the user's variables that change what they print.
Times are printed in UTC. Nothing here knows what a command means, and nothing raises for what a command does.

Where the command runs is a `Transport`: `Here` runs it on this machine, `ssh.Ssh` on another. Safe to use from any
thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO, Protocol

from aver.model.record import Record, field

MOST_BYTES = 256 * 1024**2
_AT_ONCE = 1 << 16
_LOOK_S = 0.1  # how often to look whether a silent command has ended and left its output open to a child

_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "KRB5CCNAME",
    "SSH_AUTH_SOCK", "SLURM_CONF", "SLURM_JWT",
)  # fmt: skip
_OUR_STAMP = ".made-by"  # in the folder that `aver env` puts on PATH
_FIXED = {"LC_ALL": "C", "TZ": "UTC0", "SLURM_TIME_FORMAT": "standard", "SLURM_BITSTR_LEN": "0"}


class Reply(Record):
    """The command ran to its own end. Text may hold surrogates for bytes that are not UTF-8."""

    status: int
    out: str
    err: str
    took_s: float


class Trouble(Record):
    """The command was not found, was killed, or did not end in time. `out` and `err` are what it had printed."""

    text: str
    began: bool  # False: it was not even started, so it did nothing
    out: str = ""
    err: str = ""
    took_s: float = 0.0
    reason: str = "CommandNotFound"  # one word for what holds a job back that was not handed over


# Slurm's commands wait a minute for a configuration file that is not there, before they talk to anybody
_NO_FILE = re.compile(rb"s_p_parse_file: cannot stat file .*, retrying in ")
NO_FILE_STATUS = 1


class Call(Record):
    """One call, ready to be made. `env` is the whole environment."""

    words: tuple[str, ...]
    env: Mapping[str, str]
    timeout_s: float
    stdin: bytes = b""
    umask: int = -1  # -1: as it is
    cwd: str | None = None


class Transport(Protocol):
    def run(self, call: Call) -> Reply | Trouble:
        """Make the call and wait for its end, at most `timeout_s`."""


class Here:
    """On this machine."""

    def run(self, call: Call) -> Reply | Trouble:
        return converse(call)


def converse(call: Call, ready: bytes = b"") -> Reply | Trouble:
    """Make the call on this machine. Nothing of `stdin` is sent before `ready` was printed; see `Trouble.began`."""
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            call.words,
            stdin=subprocess.PIPE if call.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(call.env),
            cwd=call.cwd,
            umask=call.umask,
            start_new_session=True,
        )
    except FileNotFoundError:
        missing = call.cwd if call.cwd is not None and not os.path.isdir(call.cwd) else call.words[0]
        return Trouble(f"{missing}: not found", began=False)
    except (OSError, ValueError) as error:
        return Trouble(f"{call.words[0]}: can't be started: {getattr(error, 'strerror', None) or error}", began=False)
    return _Running(process, call, began, ready).finish()


class _Running:
    """A process, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], call: Call, began: float, ready: bytes) -> None:
        self.process = process
        self.call = call
        self.began = began
        self.ready = ready  # what is waited for before stdin is sent
        self.printed: dict[IO[bytes], bytearray] = {}
        self.unsent = memoryview(call.stdin)
        self.has_no_file = False
        self.selector = selectors.DefaultSelector()

    def finish(self) -> Reply | Trouble:
        """Its reply; nothing of it runs when this returns, but for what it put into the background and left."""
        try:
            trouble = self._pump()
        except BaseException:
            self._kill()
            raise
        finally:
            self.selector.close()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        out, err = (bytes(self.printed[pipe]) for pipe in self._outputs())
        texts = out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape")
        took_s = time.monotonic() - self.began
        status = self.process.returncode if not self.has_no_file else NO_FILE_STATUS
        name = self.call.words[0]
        if not trouble and status < 0:
            trouble = f"{name}: was killed by signal {-status}"
        has_begun = not self.ready  # what waits for a word and did not hear it was told nothing
        return Trouble(trouble, has_begun, *texts, took_s) if trouble else Reply(status, *texts, took_s)

    def _pump(self) -> str:
        """Read until its end; the sentence that says why it was killed instead, if it was."""
        for pipe in self._outputs():
            self.printed[pipe] = bytearray()
            os.set_blocking(pipe.fileno(), False)
            self.selector.register(pipe, selectors.EVENT_READ)
        if self.process.stdin is not None:
            os.set_blocking(self.process.stdin.fileno(), False)
            if not self.ready:
                self.selector.register(self.process.stdin, selectors.EVENT_WRITE)
        deadline = self.began + self.call.timeout_s
        while self.process.poll() is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                self._kill()
                return f"{self.call.words[0]}: no answer within {self.call.timeout_s:g} s"
            if not self.selector.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(left_s)
                continue
            for key, _ in self.selector.select(min(left_s, _LOOK_S)):
                self._serve(key.fileobj)  # type: ignore[arg-type]
            if _NO_FILE.search(bytes(self.printed[self._outputs()[1]])):
                self.has_no_file = True
                self._kill()
                return ""
            if self._size() > MOST_BYTES:
                self._kill()
                return f"{self.call.words[0]}: printed more than {MOST_BYTES >> 20} MiB"
        for (
            pipe
        ) in self._outputs():  # what it printed last is there already; its background children are not waited for
            while pipe in self.selector.get_map() and self._serve(pipe) and self._size() <= MOST_BYTES:
                pass
        return ""

    def _serve(self, pipe: IO[bytes]) -> bool:
        """Read or write what can be now; False when there is nothing more for the moment."""
        if pipe is self.process.stdin:
            try:
                self.unsent = self.unsent[os.write(pipe.fileno(), self.unsent[:_AT_ONCE]) :]
            except BlockingIOError:
                return False
            except OSError:  # it does not want it
                self.unsent = self.unsent[len(self.unsent) :]
            if not self.unsent:
                self.selector.unregister(pipe)
                pipe.close()
            return True
        try:
            got = os.read(pipe.fileno(), _AT_ONCE)
        except BlockingIOError:
            return False
        if not got:
            self.selector.unregister(pipe)
        self.printed[pipe] += got
        if self.ready and self.process.stdin is not None and self.ready in self.printed[self._outputs()[0]]:
            self.ready = b""
            self.selector.register(self.process.stdin, selectors.EVENT_WRITE)
        return bool(got)

    def _outputs(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return self.process.stdout, self.process.stderr

    def _size(self) -> int:
        return sum(len(text) for text in self.printed.values())

    def _kill(self) -> None:
        """End all of its group. It is not reaped before, so the number is still its own."""
        if self.process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Commands(Record):
    """Slurm's commands as this site has them.

    `names` says the words of a command whose name is another (`sbatch` → `spur sbatch`); `prefix` stands before those
    that it does not name. `path` and `conf` are PATH and SLURM_CONF; None: as in our own environment.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None
    conf: str | None = None
    prefix: str = ""
    transport: Transport = field(default_factory=Here)
    is_elsewhere: bool = False  # another host's environment is added to, and nothing of this machine's is in it

    def call(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        umask: int = -1,
        cwd: str | None = None,
    ) -> Reply | Trouble:
        """Call a command by its usual name. `env` is added to the cleaned environment, last; never raises."""
        environment = {**self.environment(), **(env or {})}
        try:
            words = (*self.words(argv[0]), *argv[1:])
        except ValueError as error:
            return Trouble(f"{argv[0]}: its words in the settings can't be read: {error}", began=False)
        return self.transport.run(Call(words, environment, timeout_s, stdin, umask, cwd))

    def words(self, name: str) -> list[str]:
        """The words that call it; ValueError where a quote is not closed."""
        return shlex.split(self.names.get(name, "")) or [*shlex.split(self.prefix), name]

    def environment(self) -> dict[str, str]:
        """What the commands need, and nothing that changes what they print."""
        if self.is_elsewhere:
            return dict(_FIXED)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        kept["PATH"] = _path_without_ours(kept.get("PATH", os.defpath)) if self.path is None else self.path
        if self.conf is not None:
            kept["SLURM_CONF"] = self.conf
        return {**kept, **_FIXED}


def _path_without_ours(path: str) -> str:
    """A PATH without the folders of Aver's own Slurm-style commands, which a shell of `aver shell` has in front."""
    folders = path.split(os.pathsep)
    return os.pathsep.join(one for one in folders if not os.path.exists(os.path.join(one or ".", _OUR_STAMP)))
