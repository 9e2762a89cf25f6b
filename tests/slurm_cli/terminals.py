"""A command at a terminal of its own, as a person sits before it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

DEADLINE_S = 60.0


class Session:
    """What is typed goes in, what is drawn is kept. Always closed with `end`."""

    def __init__(self, words: list[str], folder: Path, environment: Mapping[str, str], rows: int, columns: int) -> None:
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            try:
                os.chdir(folder)
                os.execve(words[0], words, dict(environment))
            finally:
                os._exit(99)
        self.resize(rows, columns)
        self.shown = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, text: str) -> None:
        """Wait until the text has been drawn since the last time that we waited."""
        deadline = time.monotonic() + DEADLINE_S
        fresh = ""
        while text not in fresh:
            if time.monotonic() > deadline:
                pytest.fail(f"{text!r} was not shown; all that was: {self.shown!r}")
            more = self._read()
            if more is None:
                pytest.fail(f"it ended without {text!r}; all that was shown: {self.shown!r}")
            fresh += more
            self.shown += more

    def end(self) -> int:
        """Read to the end; the exit status, 128 and more for a signal."""
        deadline = time.monotonic() + DEADLINE_S
        while (more := self._read()) is not None:
            self.shown += more
            if time.monotonic() > deadline:
                pytest.fail(f"it did not end; all that was shown: {self.shown!r}")
        os.close(self._terminal)
        _, status = os.waitpid(self.pid, 0)
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _read(self) -> str | None:
        if not select.select([self._terminal], [], [], 0.05)[0]:
            return ""
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:
            return None
        return data.decode("utf-8", "replace") if data else None
