"""What a job writes, from attempt to attempt, to somebody who waits for its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aver.cli.attach.stream import OutputStream, Write
from aver.cli.facts import files_of
from aver.cli.session import Session
from aver.client.output_paths import JobFiles
from aver.model.reasons import NOT_STARTED, RETRY
from aver.model.states import State
from aver.store.read.rows import AttemptRow, JobRow

Sinks = Callable[[JobFiles], Sequence[tuple[str, Write]]]  # which files are shown, and where


class AttemptStreams:
    """Shows the files of one attempt after the other, each from its start on: before that, they may be somebody else's.

    `first` is the attempt to begin with, and `offset` where its files begin.
    """

    def __init__(
        self, session: Session, sinks: Sinks, tell: Callable[[str], None], first: int = 1, offset: int = 0
    ) -> None:
        self._session = session
        self._sinks = sinks
        self._tell = tell
        self._first = first
        self._offset = offset
        self._stream = OutputStream(session.output.masking)
        self._announced = 0  # the attempt that was last said to be waited for
        self.attempt = 0  # whose output is shown

    def look(self, job: JobRow) -> None:
        """Begin with attempts that have started since; say when the next one is due."""
        for attempt in self._session.found_reader(str(job.id)).attempts(job.id):
            if attempt.attempt >= max(self._first, self.attempt + 1) and attempt.started_at is not None:
                self._begin(job, attempt)
        if job.state is State.PENDING and job.reason == RETRY and self._announced < job.attempt == self.attempt:
            from aver.cli.explanation import waiting_words  # few jobs wait

            self._announced = job.attempt
            if words := waiting_words(self._session, job):
                self._stream.finish()
                self._tell(f"waiting {words}")

    def _begin(self, job: JobRow, attempt: AttemptRow) -> None:
        if attempt.reason in NOT_STARTED:
            return
        files = files_of(self._session, job, attempt.attempt)
        before = self._stream
        is_first = not self.attempt
        if not is_first:
            before.finish()
            self._stream = OutputStream(self._session.output.masking)
            self._tell(f"attempt {attempt.attempt} begins")
        self.attempt = attempt.attempt
        for at, (path, write) in enumerate(self._sinks(files)):
            seen = (0 if at else self._offset) if is_first else before.end_of(path) if files.append else 0
            self._stream.begin(path, seen, write)

    def finish(self, timeout_s: float | None = None, stalled_s: float | None = None) -> None:
        """Pass on the rest; see `OutputStream.finish`."""
        self._stream.finish(timeout_s, stalled_s)

    @property
    def failure(self) -> str | None:
        """Why the output could not be passed on."""
        return self._stream.failure
