"""A terminal for `aver`: what it draws is kept."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

from product import DEADLINE_S, Product


class Terminal:
    """`aver` with a terminal of its own; what it draws is kept."""

    def __init__(self, product: Product, args: list[str], width: int, height: int, **env: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aver", *args], cwd=product.folder, stdin=slave, stdout=slave, stderr=slave,
            env={**kept, "TERM": "xterm", **env}, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = b""

    def read_until(self, wanted: bytes | None) -> str:
        """Read until the text is there; None: to the end."""
        deadline = time.monotonic() + DEADLINE_S
        while wanted is None or wanted not in self.seen:
            assert time.monotonic() < deadline, self.seen.decode(errors="replace")
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    data = os.read(self._master, 65536)
                except OSError:  # the other side is closed
                    break
                if not data:
                    break
                self.seen += data
        return self.seen.decode()

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def close(self) -> int:
        os.close(self._master)
        return self.process.wait(DEADLINE_S)
