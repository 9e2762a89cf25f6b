"""Copy what a job writes to our own stdout and stderr while somebody waits for it.

Threads of their own, so that a slow reader of our output never delays the verdict. After the job is
settled, `finish` returns only when the last byte was passed on, or nobody reads any more.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from aver.cli.follow import Follower
from aver.cli.output import ReaderLeft
from aver.cli.output.masking import Masking
from aver.errors import CantWriteError

Write = Callable[[bytes], None]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class OutputStream:
    """Follows the files of one job from its start to its end."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._wake_read, self._wake_write = os.pipe()
        self._is_settled = threading.Event()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._ends: dict[str, int] = {}
        self.failure: str | None = None  # why the output could not be passed on

    def end_of(self, path: str) -> int:
        """Up to where a file was shown, once it is finished."""
        return self._ends.get(path, 0)

    def begin(self, path: str, offset: int, write: Write) -> None:
        """Follow one file. Signals stay with the main thread."""
        thread = threading.Thread(target=self._copy, args=(path, offset, write), name="copy-output", daemon=True)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            thread.start()
            self._threads.append(thread)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    @property
    def has_begun(self) -> bool:
        return bool(self._threads)

    def finish(self, timeout_s: float | None = None) -> None:
        """Pass on the rest, then return; after `timeout_s` return whatever is left. Twice is harmless."""
        if self._is_closed:
            return
        self._is_settled.set()
        os.write(self._wake_write, b"x")
        for thread in self._threads:
            thread.join(timeout_s)
        if not any(thread.is_alive() for thread in self._threads):
            self._is_closed = True
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _copy(self, path: str, offset: int, write: Write) -> None:
        masked = self._masking.stream()
        try:
            with Follower(path, offset) as follower:
                while True:
                    is_last = self._is_settled.is_set()
                    while data := follower.read():
                        write(masked.feed(data))
                    if is_last:
                        break
                    follower.wait(self._wake_read)
                self._ends[path] = follower.offset
            write(masked.finish())
        except ReaderLeft:
            return  # the verdict is still waited for
        except CantWriteError as error:
            self.failure = str(error)
