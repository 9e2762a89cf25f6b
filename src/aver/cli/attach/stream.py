"""Copy what a job writes to our own stdout and stderr while somebody waits for it.

Threads of their own, so that a slow reader of our output never delays the verdict. After the job is
settled, `finish` returns only when the last byte was passed on, or nobody reads any more.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from aver.cli.attach.follow import Follower
from aver.cli.attach.signals import kept_out
from aver.cli.output import ReaderLeft
from aver.errors import CantWriteError
from aver.render.masking import Masking

Write = Callable[[bytes], None]
LOOK_S = 0.25
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class OutputStream:
    """Follows the files of one job from its start to its end."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._wake_read, self._wake_write = os.pipe()
        self._is_settled = threading.Event()
        self._copying: list[threading.Event] = []  # one for each thread, set when it has ended
        self._passed = 0  # how often something was passed on
        self._is_closed = False
        self._ends: dict[str, int] = {}
        self.failure: str | None = None  # why the output could not be passed on

    def end_of(self, path: str) -> int:
        """Up to where a file was shown, once it is finished."""
        return self._ends.get(path, 0)

    def begin(self, path: str, offset: int, write: Write) -> None:
        """Follow one file. Signals stay with the main thread."""
        is_over = threading.Event()
        thread = threading.Thread(
            target=self._work, args=(path, offset, write, is_over), name="copy-output", daemon=True
        )
        with kept_out(*SIGNALS):
            thread.start()
            self._copying.append(is_over)

    @property
    def has_begun(self) -> bool:
        return bool(self._copying)

    def finish(self, timeout_s: float | None = None, stalled_s: float | None = None) -> None:
        """Pass on the rest, then return; after `timeout_s`, or when nobody has read for `stalled_s`, whatever is left.

        Twice is harmless, and so is a signal in between. Threads are not joined: Python takes a thread for ended
        when a signal interrupts its join.
        """
        if self._is_closed:
            return
        self._is_settled.set()
        os.write(self._wake_write, b"x")
        began = moved = time.monotonic()
        passed = self._passed
        while waiting := [is_over for is_over in self._copying if not is_over.is_set()]:
            waiting[0].wait(LOOK_S)  # not for longer: a signal may have come just before
            now = time.monotonic()
            if self._passed != passed:
                passed, moved = self._passed, now
            is_late = timeout_s is not None and now - began >= timeout_s
            if is_late or (stalled_s is not None and now - moved >= stalled_s):
                return
        self._is_closed = True
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _work(self, path: str, offset: int, write: Write, is_over: threading.Event) -> None:
        try:
            self._copy(path, offset, write)
        finally:
            is_over.set()

    def _copy(self, path: str, offset: int, write: Write) -> None:
        masked = self._masking.stream()
        try:
            with Follower(path, offset) as follower:
                while True:
                    is_last = self._is_settled.is_set()
                    while data := follower.read():
                        write(masked.feed(data))
                        self._passed += 1
                    if is_last:
                        break
                    follower.wait(self._wake_read)
                self._ends[path] = follower.offset
            write(masked.finish())
        except ReaderLeft:
            return  # the verdict is still waited for
        except CantWriteError as error:
            self.failure = str(error)
