"""The thread that commits. One batch at a time; the loop goes on meanwhile.

The store's work releases the interpreter lock, so jobs are started and heard while the disk syncs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from queue import SimpleQueue

from aver.errors import AverError
from aver.model.events import Event
from aver.store.write.writer import Writer


class Committer:
    """Hand over with `begin`; when `fileno` is readable, `finish` tells how it went."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._batches: SimpleQueue[Sequence[Event] | None] = SimpleQueue()
        self._result: AverError | None = None
        self._read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.is_busy = False
        self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        return self._read_fd

    def begin(self, events: Sequence[Event]) -> None:
        assert not self.is_busy
        self.is_busy = True
        self._batches.put(events)

    def finish(self) -> AverError | None:
        """The batch is durable (None), or why it is not; then it may be handed over again."""
        os.read(self._read_fd, 64)
        self.is_busy = False
        return self._result

    def check_store(self) -> None:
        """Raise CantWriteError if what is committed would be seen by nobody."""
        self._writer.check_file()

    def close(self) -> None:
        self._batches.put(None)
        self._thread.join()
        self._writer.close()
        os.close(self._read_fd)
        os.close(self._write_fd)

    def _work(self) -> None:
        while (events := self._batches.get()) is not None:
            try:
                self._writer.commit(events)
                self._result = None
            except AverError as error:
                self._result = error
            os.write(self._write_fd, b".")
