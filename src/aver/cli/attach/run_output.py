"""What all jobs of a run write, each line with the job's name before it.

`RunOutput` follows a run while somebody waits for it: a thread reads the run's events, which name every attempt that
began or ended, so that no job is too short to be seen. Whole lines are written; the rest of the last one follows at
the attempt's end. Files on another host are not read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection

from aver.cli.attach.follow import CHUNK, tail_offset
from aver.cli.attach.signals import kept_out
from aver.cli.attach.stream import SIGNALS
from aver.cli.facts import files_of
from aver.cli.output import ReaderLeft
from aver.cli.session import Session
from aver.errors import AverError
from aver.model.events import Observed
from aver.model.reasons import NOT_STARTED
from aver.model.states import UNSETTLED, State
from aver.printable import one_line
from aver.render.masking import to_bytes
from aver.store.read.job_list import Wanted, find_jobs
from aver.store.read.rows import JobRow

TICK_S = 0.1
JOIN_S = 30.0
TINTS = ("36", "33", "35", "32", "34", "31")


class Tail:
    """One attempt's file, from where it was read last."""

    def __init__(self, session: Session, job: JobRow, path: str, offset: int) -> None:
        self._output = session.output
        self._masked = session.output.masking.stream()
        self._left = b""
        self.path = path
        self.offset = offset
        name = one_line(session.output.masking.whole(job.name))
        tint = TINTS[job.id % len(TINTS)] if session.output.has_colours else ""
        self._prefix = to_bytes(f"\x1b[{tint}m{name} |\x1b[0m " if tint else f"{name} | ")

    def copy(self, is_over: bool) -> None:
        """Write the whole lines that are new; the rest as well when nothing more comes."""
        try:
            with open(self.path, "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size < self.offset:
                    self.offset = 0
                file.seek(self.offset)
                while data := file.read(CHUNK):
                    self.offset += len(data)
                    self._write(self._masked.feed(data))
        except OSError:
            pass  # it is not there yet, or was removed
        if is_over:
            self._write(self._masked.finish())
            if self._left:
                self._write(b"\n")

    def _write(self, data: bytes) -> None:
        *lines, self._left = (self._left + data).split(b"\n")
        if lines:
            self._output.raw(b"".join(self._prefix + line + b"\n" for line in lines))


def show_outputs(session: Session, jobs: Collection[JobRow], err: bool, lines: int | None) -> None:
    """Write what the newest attempts of these jobs wrote, one job after the other."""
    for job in jobs:
        if job.attempt:
            files = files_of(session, job, job.attempt)
            path = files.stderr if err and files.stderr is not None else files.stdout
            Tail(session, job, path, _begin(path, lines)).copy(is_over=True)


def _begin(path: str, lines: int | None) -> int:
    try:
        with open(path, "rb", buffering=0) as file:
            return tail_offset(file, lines)
    except OSError:
        return 0


class RunOutput:
    """Somebody who waits is shown what the jobs of a run write.

    `is_new`: the run was just submitted; else only jobs that are not settled yet are shown. `jobs`: only these.
    """

    says_waits = False

    def __init__(
        self, session: Session, run: int, is_new: bool, jobs: Collection[int] | None = None, err: bool = False,
        lines: int | None = None,
    ) -> None:  # fmt: skip
        self._session = session
        self._run = run
        self._is_new = is_new
        self._jobs = jobs
        self._err = err
        self._lines = lines
        self._is_over = threading.Event()
        self._has_left: threading.Event | None = None

    def begin(self) -> None:
        has_left = threading.Event()
        with kept_out(*SIGNALS):
            threading.Thread(target=self._work, args=(has_left,), name="run-output", daemon=True).start()
            self._has_left = has_left

    def __call__(self, changed: tuple[int, ...]) -> None:
        if self._has_left is None:
            self.begin()

    def end(self) -> None:
        """Everything is settled: return when all of it is written."""
        if self._has_left is None:
            self.begin()
        self._is_over.set()
        assert self._has_left is not None
        self._has_left.wait(JOIN_S)

    def clear(self) -> None:
        """Nothing is drawn over."""

    # ---- the thread -------------------------------------------------------------------------------

    def _work(self, has_left: threading.Event) -> None:
        session = Session(self._session.home, self._session.output)
        try:
            self._follow(session)
        except ReaderLeft:
            pass  # the verdict is still waited for
        except AverError as error:
            session.output.note(str(error))
        finally:
            has_left.set()

    def _follow(self, session: Session) -> None:
        reader = session.found_reader(str(self._run))
        tails: dict[tuple[int, int], Tail] = {}
        ends: dict[str, int] = {}
        seq = 0 if self._is_new else reader.last_seq()
        if not self._is_new:
            active = Wanted(run=self._run, states=UNSETTLED - {State.PENDING, State.SUBMITTED})
            for job in reader.listed(find_jobs(reader, active, None, 0.0)[0]):
                self._begin(session, job, job.attempt, self._lines, tails, ends)
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(TICK_S)
            ended = []
            for stored in reader.events(run=self._run, after=seq):
                seq, event = stored.seq, stored.event
                if not isinstance(event, Observed) or event.reason in NOT_STARTED or event.usage is None:
                    continue
                row = None if (event.job, event.attempt) in tails else reader.job(event.job)
                if row is not None:
                    self._begin(session, row, event.attempt, None, tails, ends)
                if event.verdict is not None:
                    ended.append((event.job, event.attempt))
            for tail in tails.values():
                tail.copy(is_over=False)
            for key in ended:
                if (done := tails.pop(key, None)) is not None:
                    done.copy(is_over=True)
                    ends[done.path] = done.offset
        for tail in tails.values():
            tail.copy(is_over=True)

    def _begin(
        self, session: Session, job: JobRow, attempt: int, lines: int | None, tails: dict[tuple[int, int], Tail],
        ends: dict[str, int],
    ) -> None:  # fmt: skip
        if self._jobs is not None and job.id not in self._jobs:
            return
        files = files_of(session, job, attempt)
        path = files.stderr if self._err and files.stderr is not None else files.stdout
        if attempt > 1 and lines is None:
            session.output.note(f"{one_line(job.name)}: attempt {attempt} begins")
        offset = _begin(path, lines) if lines is not None else ends.get(path, 0) if files.append else 0
        tails[job.id, attempt] = Tail(session, job, path, offset)
