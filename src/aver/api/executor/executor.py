"""`aver.Executor`: a concurrent.futures.Executor whose calls are jobs, each with its own verdict."""

from __future__ import annotations

import atexit
import concurrent.futures
import hashlib
import itertools
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from aver.api.executor.future import Future, state_of
from aver.api.executor.pump import KEY, Pump
from aver.api.executor.submission import Call, check_name, dump_call, job_name, job_spec
from aver.api.function_call import calls_folder, fingerprint, imports_of_main, reference_of
from aver.api.notebook import SHOWN, Shown, Table, progress, table
from aver.calls.files import Reference
from aver.client.submit import check_key
from aver.config import load_config
from aver.errors import AverError, UsageError
from aver.home import Home
from aver.store.read.reader import Reader

Result = TypeVar("Result")
OWN_OPTIONS = ("name", "key", "warm")
LONGEST_KEY = 100
ANYBODY = "-"  # whose calls with a key are those of executors without a name


class Executor(concurrent.futures.Executor, Shown):
    """Runs calls of Python functions as jobs, here or on a cluster.

    `name`: an executor of this name finds the calls of an earlier one (`futures`), also after a restart. Jobs outlive
    this process either way. `max_workers`: so many jobs of this executor at once; the others are submitted when there
    is room (default: all are submitted at once, and run as CPUs are free). `warm`: calls are forked from a Python that
    has imported these modules, or with True those that the script has imported; each call is a process of its own all
    the same. `options` are keys of a flow's job, for every call: `mem`, `time`, `cpus`, `gpus`, `retry`, `engine` and
    so on.

    >>> with Executor(mem="1G") as executor:
    ...     executor.submit(pow, 2, 10).result()
    1024
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        max_workers: int | None = None,
        warm: bool | Sequence[str] = False,
        home: Home | None = None,
        **options: object,
    ) -> None:
        if name is not None:
            check_name(name)
        if max_workers is not None and max_workers < 1:
            raise ValueError("max_workers must be greater than 0")
        self.name = name or f"executor-{os.urandom(6).hex()}"
        self._is_named = name is not None
        self._home = home or Home.find()
        self._options: Mapping[str, object] = {**options, "warm": warm}
        self._shared = _Shared(Pump(self._home, self.name, max_workers))
        _living.add(self._shared.pump)
        job_spec({key: value for key, value in options.items() if key not in OWN_OPTIONS})

    def options(self, **options: object) -> Executor:
        """The same executor with other options for what is submitted through this view."""
        view = object.__new__(Executor)
        view.__dict__ |= self.__dict__
        view._options = {**self._options, **options}
        return view

    def submit(  # type: ignore[override]
        self, fn: Callable[..., Result], /, *args: Any, aver: Mapping[str, object] | None = None, **kwargs: Any
    ) -> Future[Result]:
        """Call `fn(*args, **kwargs)` as a job. Futures among the arguments, also inside of others, are its needs.

        `aver`: options of this call; `name` is the job's, and the same `key` with the same call is the same job.
        Raises what pickling raises, and UsageError for wrong options.
        """
        if self._shared.is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        options = {**self._options, **(aver or {})}
        name, key = options.pop("name", None), options.pop("key", None)
        modules = self._shared.modules(options.pop("warm", False))
        if key is not None:
            check_key(str(key))
            if len(str(key)) > LONGEST_KEY:
                raise UsageError(f"the key of a call has at most {LONGEST_KEY} characters")
        spec = job_spec(options)
        data, needs = dump_call(fn, args, kwargs, self._home)
        for need in needs:
            if need._canceller is not self._shared.pump and isinstance(need._canceller, Pump):
                need._canceller.wait_submitted(need)
        number = next(self._shared.numbers)
        shown = getattr(fn, "__name__", type(fn).__name__)
        if key is None:
            place, call, run_key, mark = self.name, os.urandom(8).hex(), "", ""
            shown = f"{shown}-{number}"
        else:
            place = self.name if self._is_named else ANYBODY
            call = hashlib.sha256(str(key).encode()).hexdigest()[:24]
            run_key, mark = f"{KEY}/{place}/key/{key}", fingerprint(fn, args, kwargs, _reference)
        folder = self._shared.folder(self._home, spec.engine, place)
        future: Future[Result] = Future(
            self._home,
            (folder, call),
            job_name(shown if name is None else str(name)),
            self._shared.pump,
            None if key is None else str(key),
        )
        self._shared.submit(number, Call(future, data, spec, needs, modules, run_key, mark))
        return future

    def map(
        self, fn: Callable[..., Result], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[Result]:
        """As `map`, each call a job; `chunksize` is the number of calls per job."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout)
        calls = zip(*iterables, strict=False)
        chunks = iter(lambda: list(itertools.islice(calls, chunksize)), [])
        found = super().map(_call_each, itertools.repeat(fn), chunks, timeout=timeout)
        return itertools.chain.from_iterable(found)

    @property
    def futures(self) -> tuple[Future[Any], ...]:
        """All calls of the executor of this name, by the number of their jobs, whoever submitted them."""
        self._shared.pump.wait_submitted()
        return self._shared.find(self)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. `cancel_futures` cancels what has not begun; with `wait`, wait for all the others.

        Without `wait` the jobs go on, also when this process ends.
        """
        self._shared.is_shut = True
        if cancel_futures:
            self._cancel([future for future in self._shared.pump.unsettled() if not future.running()])
        if wait:
            self._shared.pump.wait_settled()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Ctrl-C cancels what this process submitted through this executor, and nothing else."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._cancel(self._shared.pump.unsettled())
        self.shutdown(wait=True)
        return None

    @staticmethod
    def _cancel(futures: Iterable[Future[Any]]) -> None:
        for pump, group in itertools.groupby(futures, lambda one: one._canceller):
            pump.cancel(list(group))

    def counts(self) -> dict[str, int]:
        """How many calls of this process are in each state."""
        return self._shared.counts()

    def __repr__(self) -> str:
        states = ", ".join(f"{count} {state}" for state, count in self.counts().items())
        return f"<Executor {self.name}: {states or 'nothing submitted'}>"

    def _table(self) -> Table:
        """The newest calls that somebody holds."""
        futures = self._shared.futures()
        rows = [(one._number or "", one.name, state_of(one)) for one in reversed(futures[-SHOWN:])]
        counts = self.counts()
        settled = sum(counts.values()) - counts.get("pending", 0) - counts.get("running", 0)
        made = table(
            f"executor {self.name}", progress(counts, settled), ("job", "call", "state"), rows, len(futures) - SHOWN
        )
        return Table(repr(self), made, self._shared.is_shut and settled == sum(counts.values()))

    def _drawing(self) -> Callable[[], Table | None]:
        """A table does not keep an executor alive that nobody uses any more."""
        found = weakref.ref(self)

        def draw() -> Table | None:
            executor = found()
            return None if executor is None else executor._table()

        return draw


class _Shared:
    """What an executor and its views have in common."""

    def __init__(self, pump: Pump) -> None:
        self.pump = pump
        self.numbers = itertools.count(1)
        self.is_shut = False
        self._of_main: tuple[str, ...] | None = None  # modules of the script, as they were at the first warm call
        self.held: weakref.WeakValueDictionary[int, Future[Any]] = weakref.WeakValueDictionary()
        self._found: dict[int, Future[Any]] = {}
        self._folders: dict[tuple[str | None, str], str] = {}
        self._ended: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._lock = threading.Lock()

    def folder(self, home: Home, engine: str | None, place: str) -> str:
        """Where calls of this place lie, looked up once."""
        known = self._folders.get((engine, place))
        if known is None:
            known = self._folders[engine, place] = calls_folder(home, engine or load_config().engine, place)
        return known

    def modules(self, warm: object) -> tuple[str, ...] | None:
        """What a server of warm calls imports; None without one. UsageError."""
        if isinstance(warm, bool):
            if warm and self._of_main is None:
                self._of_main = imports_of_main()
            return self._of_main if warm else None
        if isinstance(warm, str) or not isinstance(warm, Sequence) or not all(isinstance(one, str) for one in warm):
            raise UsageError(f"warm: True, False or a list of modules, not {warm!r}")
        return tuple(warm)

    def submit(self, number: int, call: Call) -> None:
        self.held[number] = call.future
        call.future.add_done_callback(self._count)
        self.pump.submit(call)

    def _count(self, future: concurrent.futures.Future[Any]) -> None:
        assert isinstance(future, Future)
        with self._counting:
            self._ended[state_of(future)] += 1

    def counts(self) -> dict[str, int]:
        """How many calls that this process submitted are in each state."""
        is_running = [future.running() for future in self.pump.asked()]
        open_now = Counter({"pending": is_running.count(False), "running": is_running.count(True)})
        with self._counting:
            return dict(+(self._ended + open_now))

    def futures(self) -> list[Future[Any]]:
        """Those that this process submitted and that somebody holds, in order."""
        return [future for _, future in sorted(self.held.items())]

    def find(self, executor: Executor) -> tuple[Future[Any], ...]:
        """All futures of the executor's name, those of the store included."""
        with self._lock:
            self._found |= {one._number: one for one in self.futures() if one._number is not None}
            reader = Reader.open(executor._home.database)
            new: list[tuple[int, Future[Any]]] = []
            if reader is not None:
                with reader:
                    for run in reader.runs_by_key_prefix(f"{KEY}/{executor.name}/"):
                        new += self._of_run(executor._home, reader, run)
            self._found |= {future._number: future for _, future in new if future._number is not None}
            self.pump.follow(new)
            return tuple(future for _, future in sorted(self._found.items()))

    def _of_run(self, home: Home, reader: Reader, run: int) -> list[tuple[int, Future[Any]]]:
        submission = reader.submission(run)
        found = []
        for row in reader.jobs(run) if submission is not None else ():
            assert submission is not None
            reference = reference_of(submission.flow.jobs[row.spec])
            if row.id not in self._found and reference is not None:
                _, mark, key = submission.key.removeprefix(f"{KEY}/").partition("/key/")
                future: Future[Any] = Future(home, reference, row.name, self.pump, key if mark else None)
                future._number = row.id
                found.append((run, future))
        return found


def _reference(value: object) -> Reference | None:
    return value._reference if isinstance(value, Future) else None


def _call_each(function: Callable[..., Result], calls: list[tuple[Any, ...]]) -> list[Result]:
    return [function(*args) for args in calls]


_living: weakref.WeakSet[Pump] = weakref.WeakSet()  # one that has work is held by its thread


@atexit.register
def _leave() -> None:
    """At the end of the process: what was given to submit is submitted. After Ctrl-C it is cancelled instead."""
    is_interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")
    for pump in list(_living):
        try:
            if is_interrupted:
                pump.cancel(pump.unsettled())
            pump.wait_submitted()
        except AverError as error:
            print(f"aver: {error}", file=sys.stderr)
