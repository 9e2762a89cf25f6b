"""Copy what a job writes to our own stdout and stderr while somebody waits for it.

A thread of its own, so that a slow reader of our output never delays the verdict. After the job
is settled, `finish` returns only when the last byte was passed on, or nobody reads any more.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from aver.cli.follow import Follower
from aver.cli.output.masking import Masking

Paths = Callable[[], tuple[str | None, str | None]]
FIND_S = 0.05


class OutputStream:
    """Follows the files of one job, once they are known."""

    def __init__(
        self, paths: Paths, masking: Masking, out: Callable[[bytes], None], err: Callable[[bytes], None]
    ) -> None:
        self._paths = paths
        self._masking = masking
        self._writers = (out, err)
        self._wake_read, self._wake_write = os.pipe()
        self._is_settled = threading.Event()
        self._threads: list[threading.Thread] = []
        self._finder = threading.Thread(target=self._find, name="find-output", daemon=True)

    def start(self) -> None:
        """Begin to follow. Signals stay with the main thread."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        try:
            self._finder.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def finish(self) -> None:
        """The job is settled: pass on the rest, then return."""
        self._is_settled.set()
        os.write(self._wake_write, b"x")
        self._finder.join()
        for thread in self._threads:
            thread.join()

    def _find(self) -> None:
        while True:
            is_last = self._is_settled.is_set()
            stdout, stderr = self._paths()
            if stdout is not None or stderr is not None or is_last:
                break
            self._is_settled.wait(FIND_S)
        named = [(stdout, self._writers[0])]
        if stderr is not None and stderr != stdout:
            named.append((stderr, self._writers[1]))
        for path, write in named:
            if path is not None:
                thread = threading.Thread(target=self._copy, args=(path, write), name="copy-output", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _copy(self, path: str, write: Callable[[bytes], None]) -> None:
        masked = self._masking.stream()
        try:
            with Follower(path) as follower:
                while True:
                    is_last = self._is_settled.is_set()
                    while data := follower.read():
                        write(masked.feed(data))
                    if is_last:
                        break
                    follower.wait(self._wake_read)
            write(masked.finish())
        except BrokenPipeError:
            return  # nobody reads our output; the verdict is still waited for
