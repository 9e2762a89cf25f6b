"""Commits, one batch at a time: large ones in a thread of their own, small ones in the caller's.

The store's work releases the interpreter lock, so jobs are started and heard while the disk syncs. Of a few events the
two switches between threads take as long as their sync; these are committed at once, unless the disk is slow or an
event stands for many rows.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Sequence
from queue import SimpleQueue

from aver.errors import AverError, InternalError
from aver.log import log
from aver.model.events import Event, FlowReplaced, JobsEnded, JobsGenerated, RunPruned, RunSubmitted
from aver.store.write.high_water import Loss
from aver.store.write.writer import Writer

FEW = 6  # events that are committed in the caller's thread
QUICK_S = 0.005  # if the last commit took no longer


class Committer:
    """Hand over with `begin`; if that was not all, `fileno` is readable when `finish` can tell how it went."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._batches: SimpleQueue[Sequence[Event] | None] = SimpleQueue()
        self._result: AverError | None = None
        self._read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.is_busy = False
        self._is_quick = False
        self._bug = ""  # that was logged last
        self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        return self._read_fd

    @property
    def loss(self) -> Loss | None:
        """What was committed before and is not in the store any more."""
        return self._writer.loss

    def begin(self, events: Sequence[Event]) -> bool:
        """Commit, or begin to; True: `finish` can tell at once how it went."""
        assert not self.is_busy
        if self._is_quick and len(events) <= FEW and not any(map(_has_many_rows, events)):
            self._commit(events)
            return True
        self.is_busy = True
        self._batches.put(events)
        return False

    def finish(self) -> AverError | None:
        """The batch is durable (None), or why it is not; then it may be handed over again."""
        if self.is_busy:
            os.read(self._read_fd, 64)
            self.is_busy = False
        return self._result

    def check_store(self) -> None:
        """Raise CantWriteError if what is committed would be seen by nobody."""
        if self.is_busy:
            self._writer.check_name()  # the commit looks at the rest
        else:
            self._writer.check_file()

    def close(self) -> None:
        self._batches.put(None)
        self._thread.join()
        self._writer.close()
        os.close(self._read_fd)
        os.close(self._write_fd)

    def _work(self) -> None:
        while (events := self._batches.get()) is not None:
            self._commit(events)
            os.write(self._write_fd, b".")

    def _commit(self, events: Sequence[Event]) -> None:
        began = time.monotonic()
        try:
            self._writer.commit(events)
            self._result = None
        except AverError as error:
            self._result = error
        except Exception as error:  # whoever waits for this commit would wait for ever
            self._result = InternalError(f"events that can't be stored: {type(error).__name__}: {error}")
            if str(self._result) != self._bug:  # it is tried again
                self._bug = str(self._result)
                log(f"a bug, please report it: {traceback.format_exc()}")
        self._is_quick = self._result is None and time.monotonic() - began < QUICK_S


def _has_many_rows(event: Event) -> bool:
    """Whether it may change more than a row or two."""
    if isinstance(event, RunSubmitted):
        return not event.submission.flow.is_single
    return isinstance(event, (JobsEnded, JobsGenerated, FlowReplaced, RunPruned))
