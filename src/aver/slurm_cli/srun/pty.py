"""The terminal of `srun --pty`: keys go to the first task as they are typed, and what it draws comes back.

Our own terminal is raw meanwhile, so that Ctrl-C and its like reach the task; it is as before when we end. The
size of the window follows ours.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import select
import termios
import tty

CHUNK_BYTES = 1 << 16
LOOK_S = 0.2  # how often the window's size is looked at


class Terminal:
    """A pseudo-terminal for the step, in front of our own."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()
        self._size = b""
        self._before = termios.tcgetattr(0)
        termios.tcsetattr(self.slave, termios.TCSANOW, self._before)
        self._follow_size()
        self._has_keys = True
        self._unsent = b""
        os.set_blocking(self._master, False)
        atexit.register(self._restore)
        tty.setraw(0, termios.TCSADRAIN)

    def copy_until(self, descriptor: int) -> None:
        """Copy in both directions until `descriptor` is readable."""
        while True:
            self._follow_size()
            reading = [descriptor, self._master] + ([0] if self._has_keys and not self._unsent else [])
            writing = [self._master] if self._unsent else []
            try:
                ready, sendable, _ = select.select(reading, writing, [], LOOK_S)
            except InterruptedError:
                continue
            if self._master in ready:
                self._show()
            if 0 in ready:
                self._type()
            if sendable:
                self._send()
            if descriptor in ready:
                return

    def finish(self) -> None:
        """The step has ended: show what is left, and give the terminal back."""
        while self._show():
            pass
        self._restore()

    def _show(self) -> bool:
        try:
            data = os.read(self._master, CHUNK_BYTES)
        except (BlockingIOError, OSError):
            return False
        rest = data
        while rest:
            try:
                rest = rest[os.write(1, rest) :]
            except BlockingIOError:
                select.select([], [1], [])
            except OSError:
                return False
        return bool(data)

    def _type(self) -> None:
        try:
            data = os.read(0, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._has_keys = False
            self._unsent = b"\x04"  # the end of our input is the end of the task's
            return
        self._unsent = data
        self._send()

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._master, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""

    def _follow_size(self) -> None:
        try:
            size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
            if size != self._size:
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
                self._size = size
        except OSError:
            return

    def _restore(self) -> None:
        try:
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)
        except (OSError, termios.error):
            return
