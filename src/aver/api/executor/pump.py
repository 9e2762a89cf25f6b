"""The thread of an executor: it submits calls, many at once, and settles their futures by their verdicts.

It lives while there is something to submit or to wait for. What it hears by push it reads in the store, so a
coordinator that dies is only connected to again. A future is settled once, and only when its verdict is durable.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from aver.api.executor.future import Future
from aver.api.executor.submission import Call, fingerprint_of, make_submission
from aver.api.job_errors import Cancelled, DependencyFailed, JobError, Lost
from aver.api.outcome import ended
from aver.calls.user_code import Came
from aver.client.origin import user_name
from aver.client.submit import new_key, submit_once
from aver.errors import AverError, InternalError, UnreachableError, UsageError
from aver.home import Home
from aver.model.states import State
from aver.protocol.client import Client
from aver.protocol.messages import Cancel, Results
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow

Answer = TypeVar("Answer")
GATHER_S = 0.003  # what is submitted meanwhile goes into the same run
MOST_IN_A_RUN = 5000
FORGIVEN_S = 60.0  # after so long a loss is the first one again
PAUSES_S = (0.05, 0.2, 0.8)  # between tries while no coordinator can be had, as when one is killed as it starts
RECONNECTS = 8  # in a row: a coordinator that dies each time is not waited for
KEY = "aver.Executor"  # the first part of the keys of all its runs


class Pump:
    def __init__(self, home: Home, name: str, max_workers: int | None) -> None:
        self._home = home
        self._name = name
        self._max_workers = max_workers
        self._changed = threading.Condition()
        self._queue: deque[Call] = deque()
        self._taken: list[Call] = []  # those that are being submitted
        self._open: dict[int, _Open] = {}  # by job
        self._asked: dict[int, Future[Any]] = {}  # what this process asked for and is not settled, by identity
        self._settling = 0  # of these, how many are being told
        self._thread: threading.Thread | None = None
        self._wake: int | None = None

    # ---- for other threads ------------------------------------------------------------------------

    def submit(self, call: Call) -> None:
        with self._changed:
            self._asked[id(call.future)] = call.future
            self._queue.append(call)
            self._begin()

    def follow(self, futures: Iterable[tuple[int, Future[Any]]]) -> None:
        """Settle these too, which are jobs of these runs already."""
        with self._changed:
            for run, future in futures:
                self._hold(run, future)
            if self._open:
                self._begin()

    def cancel(self, futures: Sequence[Future[Any]]) -> bool:
        """End the jobs of these, or take calls back that are not submitted yet; False: it is too late for one."""
        named = {id(future) for future in futures}
        with self._changed:
            while any(id(one.future) in named for one in self._taken):
                self._changed.wait()
            queued = [one.future for one in self._queue if id(one.future) in named]
            self._queue = deque(one for one in self._queue if id(one.future) not in named)
        for future in queued:
            self._settle(future, Came(error=told(Cancelled(f"{future.name} was cancelled unsubmitted"), future)))
        numbers = tuple(one._number for one in futures if one._number is not None and not one.done())
        if not numbers:
            return len(queued) == len(futures)
        reply = _persist(lambda: self._cancelled(numbers))
        return all(one.code.is_so for one in reply.results)

    def _cancelled(self, jobs: tuple[int, ...]) -> Results:
        client = Client.connect(self._home)
        try:
            return client.ask(Cancel(jobs, user_name()), Results)
        finally:
            client.close()

    def unsettled(self) -> list[Future[Any]]:
        """The futures of calls that this process submitted, or is about to, and that are not settled."""
        with self._changed:
            queued = {id(one.future) for one in (*self._queue, *self._taken)}
            return [one for key, one in self._asked.items() if one._is_own or key in queued]

    def asked(self) -> list[Future[Any]]:
        """The futures of calls that this process asked for and that are not settled."""
        with self._changed:
            return [future for future in self._asked.values() if not future.done()]

    def wait_submitted(self, future: Future[Any] | None = None) -> None:
        """Wait until the call, or every call, is submitted, or can't be."""
        with self._changed:
            while any(future is None or one.future is future for one in (*self._queue, *self._taken)):
                self._changed.wait()

    def wait_settled(self) -> None:
        with self._changed:
            while self._asked or self._settling:
                self._changed.wait()

    def _begin(self) -> None:
        if self._thread is None:
            reading, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._work, args=(reading,), name="aver-executor", daemon=True)
            self._thread.start()
        elif self._wake is not None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake, b".")

    # ---- the thread -------------------------------------------------------------------------------

    def _work(self, wake: int) -> None:
        link = _Link(self._home, wake)
        try:
            while self._is_needed():
                self._submit_queued()
                try:
                    self._look(link)
                except UnreachableError as error:
                    if not link.lose():
                        self._give_up(error)
                except AverError as error:
                    self._give_up(error)
        except BaseException as error:  # a bug: nobody must wait for ever
            self._give_up(InternalError(f"{type(error).__name__}: {error}"))
            raise
        finally:
            link.close()
            os.close(wake)

    def _is_needed(self) -> bool:
        with self._changed:
            if self._queue or self._open:
                return True
            assert self._wake is not None
            os.close(self._wake)
            self._thread = self._wake = None
            return False

    def _look(self, link: _Link) -> None:
        """Settle what has its verdict; wait for the next push, or for a call to be submitted."""
        with self._changed:
            runs = {one.run for one in self._open.values()}
        changed = link.watch(runs) if runs else None
        with self._changed:
            known = dict(self._open)
        wanted = known if changed is None else {job: known[job] for job in changed if job in known}
        for row in link.rows(wanted) if wanted else ():
            self._heard(row)
        with self._changed:
            may_submit = bool(self._queue) and self._room() > 0
            is_idle = not self._open and not self._queue
        if not is_idle and not may_submit:
            link.wait()

    def _heard(self, row: JobRow) -> None:
        if row.state.is_settled:
            with self._changed:
                reference = self._open[row.id].futures[0]._reference
            found = [ended(self._home, row, reference)]
            with self._changed:
                futures = self._open.pop(row.id).futures
            while len(futures) > 1:
                self._settle(futures.pop(), found[0])
            self._settle(futures.pop(), found.pop())  # whoever has the result is the only one to hold it
            return
        with self._changed:
            futures = list(self._open[row.id].futures)
        if row.state.is_active and row.state is not State.SUBMITTED:
            for future in futures:
                if not future.running():
                    future.set_running_or_notify_cancel()

    def _hold(self, run: int, future: Future[Any]) -> None:
        assert future._number is not None
        self._open.setdefault(future._number, _Open(run, [])).futures.append(future)

    def _settle(self, future: Future[Any], found: Came) -> None:
        """Tell those who wait, and let go of the future; then tell whoever waits for the executor."""
        with self._changed:
            self._asked.pop(id(future), None)
            self._settling += 1
        if not future.done():
            if found.error is None:
                future.set_result(found.value)
            else:
                future.set_exception(found.error)
        del future, found
        with self._changed:
            self._settling -= 1
            self._changed.notify_all()

    def _give_up(self, error: AverError) -> None:
        """Fail the open futures: the coordinator can't be reached. The jobs may go on; their ends are unknown here."""
        with self._changed:
            lost = [future for one in self._open.values() for future in one.futures]
            self._open.clear()
        for future in lost:
            text = (
                f"{future.name} (job {future._number}) can't be followed: {error}; `aver why` tells its verdict later"
            )
            self._settle(future, Came(error=told(Lost(text), future)))

    # ---- submission -------------------------------------------------------------------------------

    def _room(self) -> int:
        return MOST_IN_A_RUN if self._max_workers is None else self._max_workers - len(self._open)

    def _submit_queued(self) -> None:
        with self._changed:
            if not self._queue or self._room() <= 0:
                return
        time.sleep(GATHER_S)
        with self._changed:
            count = min(self._room(), MOST_IN_A_RUN, len(self._queue))
            self._taken = [self._queue.popleft() for _ in range(count)]
        for group in _groups(self._taken):
            self._submit(group)
        with self._changed:
            self._taken = []
            self._changed.notify_all()

    def _submit(self, calls: Sequence[Call]) -> None:
        calls = [call for call in calls if not self._lacks_need(call)]
        if not calls:
            return
        key = calls[0].run_key or f"{KEY}/{self._name}/{new_key()}"
        environment = {"PYTHONUNBUFFERED": "1", **os.environ}
        try:
            if calls[0].run_key and (known := self._known(calls[0])) is not None:
                self._take_up(known, calls[0].future, is_own=False)
                return
            submission = make_submission(self._name, key, calls)
            variables = [f"{name}={value}" for name, value in environment.items()]
            reply = _persist(lambda: submit_once(self._home, submission, variables))  # its key makes it one run
        except (AverError, OSError) as error:
            if isinstance(error, UsageError) and len(calls) > 1:
                for call in calls:  # one that is wrong does not hurt the others
                    self._submit([call])
                return
            for call in calls:
                self._settle(call.future, Came(error=error))
            return
        for number, call in enumerate(calls, reply.first_job):
            self._take_up((reply.run, number), call.future, is_own=True)

    def _take_up(self, run_and_job: tuple[int, int], future: Future[Any], *, is_own: bool) -> None:
        with self._changed:
            future._number, future._is_own = run_and_job[1], is_own
            self._hold(run_and_job[0], future)

    def _lacks_need(self, call: Call) -> bool:
        """Whether a call that it needs was never submitted; then it is settled."""
        for need in call.needs:
            if need._number is None and need.done():
                text = f"{call.future.name} needs {need.name}, which was not submitted"
                self._settle(call.future, Came(error=told(DependencyFailed(text), call.future)))
                return True
        return False

    def _known(self, call: Call) -> tuple[int, int] | None:
        """The run and job that have the call's key already; UsageError if they are another call."""
        reader = Reader.open(self._home.database)
        if reader is None:
            return None
        with reader:
            run = reader.run_by_key(call.run_key)
            submission = None if run is None else reader.submission(run.id)
        if run is None or submission is None:
            return None
        if fingerprint_of(submission.flow.jobs[0]) != call.fingerprint:
            raise UsageError(
                f"the key {call.future.key!r} is that of job {run.first_job}, another function or other arguments: "
                "choose another key, or submit the same again"
            )
        return run.id, run.first_job


def _persist(ask: Callable[[], Answer]) -> Answer:
    """Ask what may be asked twice, again while no coordinator can be had. UnreachableError in the end."""
    for pause_s in PAUSES_S:
        try:
            return ask()
        except UnreachableError:
            time.sleep(pause_s)
    return ask()


class _Open(NamedTuple):
    """A job that is not settled, and who waits for it."""

    run: int
    futures: list[Future[Any]]


def _groups(calls: Iterable[Call]) -> list[list[Call]]:
    """Calls that make one run: those with a key stand alone, and no two have the same name."""
    groups: list[list[Call]] = []
    names: set[str] = set()
    for call in calls:
        if call.run_key or not groups or call.future.name in names or groups[-1][0].run_key:
            groups.append([])
            names = set()
        groups[-1].append(call)
        names.add(call.future.name)
    return groups


def told(error: JobError, future: Future[Any]) -> JobError:
    error.why, error.job = str(error), future.job
    return error


class _Link:
    """The thread's connection to the coordinator and its store."""

    def __init__(self, home: Home, wake: int) -> None:
        self._home = home
        self._wake = wake
        self._client: Client | None = None
        self._reader: Reader | None = None
        self._watched: set[int] = set()
        self._losses = 0
        self._lost_at = 0.0

    def watch(self, runs: set[int]) -> list[int] | None:
        """Jobs that have changed since the last call; None: any may have. UnreachableError."""
        if self._client is None:
            self._client = Client.connect(self._home)
            self._watched = set()
        if not runs <= self._watched:
            settled = self._client.begin_watch(sorted(runs))
            self._watched = runs - set(settled)
            return None
        changed: list[int] = []
        while (change := self._client.next_change(0.0)) is not None:
            changed += change.changed
            self._watched -= set(change.settled)
        return changed

    def rows(self, jobs: Iterable[int]) -> list[JobRow]:
        if self._reader is None:
            self._reader = Reader.open(self._home.database)
        return [] if self._reader is None else list(self._reader.jobs_by_id(jobs).values())

    def wait(self) -> None:
        """Until there is a push, or somebody wakes the thread."""
        waited: list[Any] = [self._wake] if self._client is None else [self._wake, self._client]
        select.select(waited, [], [])
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 1 << 16)

    def lose(self) -> bool:
        """The coordinator is gone; False if it can't be had."""
        if self._client is not None:
            self._client.close()
            self._client = None
        now = time.monotonic()
        self._losses = 1 if now - self._lost_at > FORGIVEN_S else self._losses + 1
        self._lost_at = now
        time.sleep(min(2.0, 0.01 * 4**self._losses))
        return self._losses <= RECONNECTS

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        if self._reader is not None:
            self._reader.close()
