"""Which runs and jobs have changed, as server-sent events, for all open pages together.

The store is looked at only while a page is open. An event's id is the number up to which everything was looked at, so
a page that comes back with it misses nothing; what is sent was committed before. All pages get an event at the same
moment, so that they share the answers to what they ask then. Pages ask only when an event tells them to: `change`, or
`tick` for what moves without a change, such as the memory of a running job. In a flood of changes, and between ticks,
the pause follows the CPU time that was used since the event before, pages' questions included: open pages take little
from the jobs of a busy machine.

A page that shows one job or one run says so, and waits for no pause: when that job or run stands otherwise (its state,
its attempt or round, its reason), the page gets `own` at the next look. This happens a few times in the life of a job,
and a look at it is one row by its number.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Literal, NamedTuple

import anyio.to_thread

from aver.errors import AverError
from aver.home import Home
from aver.store.read.reader import Reader

LOOK_S = 0.05
AT_ONCE, A_SECOND = 2.0, 4.0  # events
FLOOD = 200.0  # changes a second: nobody can read so many
MOST_PAUSE_S = 5.0
MOST_SHARE = 0.01  # of a CPU, in a flood, for all pages together
FLOOD_LOOK_S = 0.25  # between looks in a flood
FLOOD_OWN_LOOK_S = 0.1  # the same where a page shows one job or run
CALM_S = 0.25  # without a change: the flood is over
OWN_S = 0.25  # between two `own` of the same job or run
TICK_S = 2.0
BEAT_S = 5.0
PEER_S = 1.0  # how often the coordinator is looked for: one that is missing is missed where runs are not settled
MOST_EVENTS = 5000  # that are looked through for one event; of more, everything may have changed
MOST_NUMBERS = 500


class Subject(NamedTuple):
    """The one job or run that a page shows."""

    kind: Literal["job", "run"]
    number: int


Standing = tuple[str, int, str]  # state, attempt or round, reason


class _Own(NamedTuple):
    told: int
    at: float


class Feed:
    """`is_over` says that the server ends."""

    def __init__(self, home: Home) -> None:
        self.is_over: Callable[[], bool] = lambda: False
        self._home = home
        self._reader: Reader | None = None
        self._file: tuple[int, int] | None = None
        self._version = -1
        self._newest = 0  # number in the store
        self._seq = 0  # the number up to which pages were told
        self._news = (0, 0, b"")  # the newest event, and the numbers between which it is
        self._ticks = 0
        self.told = 0  # how many events were sent to pages: `told` of the events counts them
        self._flood_until = 0.0
        self._is_missed = False
        self._peer_at = 0.0
        self._pages = 0
        self._shown: Counter[Subject] = Counter()  # how many pages show it
        self._standings: dict[Subject, Standing] = {}  # as the pages know it
        self._found: dict[Subject, Standing] = {}  # as it was at the newest look
        self._own: dict[Subject, _Own] = {}  # the newest `own` of each
        self._moved = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._begin = asyncio.Lock()  # of the watch: several pages may come at the same moment

    async def stream(self, after: int | None, subject: Subject | None = None) -> AsyncIterator[bytes]:
        """The events for one page that shows `subject`, from a number on; None: from now on."""
        self._pages += 1
        if subject is not None:
            self._shown[subject] += 1
        try:
            async with self._begin:
                if self._watch is None or self._watch.done():
                    await anyio.to_thread.run_sync(self._look)
                    self._seq = self._newest
                    self._watch = asyncio.create_task(self._look_again())
            seq = self._seq if after is None or after > self._seq else after
            own = None if subject is None else self._own.get(subject)
            yield b"retry: 1000\n\n" + self._beat(seq)
            if subject is not None and await anyio.to_thread.run_sync(self._has_moved, subject, after):
                yield _event("own", seq, {})
            told, ticks, beat_at = self._is_missed, self._ticks, time.monotonic()
            while not self.is_over():
                moved = self._moved
                if self._seq < seq:  # another store is in its place
                    seq = self._seq
                    yield _event("change", seq, {"runs": [], "jobs": [], "is_whole": False})
                elif self._seq > seq:
                    since, until, event = self._news
                    if since != seq:  # it was away
                        end, data = await anyio.to_thread.run_sync(self._changes, seq)
                        until = min(end, self._seq)
                        event = _event("change", until, {**data, "pause_s": self._pause_s()})
                    seq, ticks = until, self._ticks
                    yield event
                elif subject is not None and own != self._own.get(subject):
                    own = self._own[subject]
                    yield _event("own", seq, {"told": own.told})
                elif ticks != self._ticks:
                    ticks = self._ticks
                    yield _event("tick", seq, {"told": self.told, "pause_s": self._pause_s()})
                elif told != self._is_missed or time.monotonic() >= beat_at + BEAT_S:
                    told, beat_at = self._is_missed, time.monotonic()
                    yield self._beat(seq)
                else:
                    await _wait(moved, min(1.0, beat_at + BEAT_S - time.monotonic()))
        finally:
            self._pages -= 1
            if subject is not None:
                self._shown -= Counter([subject])

    def _beat(self, seq: int) -> bytes:
        data: dict[str, object] = {
            "at": time.time(),
            "is_coordinator_missed": self._is_missed,
            "pause_s": self._pause_s(),
        }
        return _event("beat", seq, data)

    def _pause_s(self) -> float:
        """How far pages are behind at most, in a flood; 0: no flood."""
        return round(max(0.0, self._flood_until - time.monotonic()), 1)

    async def _look_again(self) -> None:
        pace, is_new, moved_at = Pace(time.monotonic(), used_s()), False, 0.0
        while self._pages and not self.is_over():
            has_moved = await anyio.to_thread.run_sync(self._look, tuple(self._shown))
            now = time.monotonic()
            is_new, moved_at = is_new or has_moved, now if has_moved else moved_at
            is_flood = now < pace.flood_until and now < moved_at + CALM_S
            if is_new and now >= pace.next_at and not is_flood:
                is_new = False
                await self._tell_all(pace, now)
            elif has_moved and self._shown:
                self._tell_own(now)
            elif not is_new and now >= pace.tick_at:
                pace.ticked(now, used_s())
                self._ticks += 1
                self.told += 1
                self._tell()
            if self._shown:
                await asyncio.sleep(FLOOD_OWN_LOOK_S if is_flood else LOOK_S)
            else:
                await asyncio.sleep(FLOOD_LOOK_S if is_flood else max(LOOK_S, pace.next_at - time.monotonic()))
        self._close()

    async def _tell_all(self, pace: Pace, now: float) -> None:
        before, end = self._seq, self._newest
        if end > before:
            self.told += 1
            pace.told(end - before, now, used_s())
            self._flood_until = pace.flood_until
            self._standings = dict(self._found)  # read before what is told
            end, data = await anyio.to_thread.run_sync(self._changes, before)
            self._news = before, end, _event("change", end, {**data, "told": self.told, "pause_s": self._pause_s()})
        self._seq = end
        self._tell()

    def _tell_own(self, now: float) -> None:
        """Tell the pages of each job or run that stands otherwise than they know."""
        told = self.told + 1
        for subject, standing in self._found.items():
            if standing != self._standings.get(subject) and now >= self._own.get(subject, _Own(0, 0.0)).at + OWN_S:
                self._standings[subject], self._own[subject], self.told = standing, _Own(told, now), told
        if self.told == told:
            self._own = {subject: own for subject, own in self._own.items() if subject in self._shown}
            self._tell()

    def _tell(self) -> None:
        """Wake all pages' streams."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _look(self, subjects: tuple[Subject, ...] = ()) -> bool:
        """Look at the store and how these stand, and now and then for the coordinator; whether anything is new."""
        is_new = False
        try:
            reader = self._open()
            if time.monotonic() >= self._peer_at + PEER_S:
                self._peer_at = time.monotonic()
                is_missed = not self._home.has_coordinator() and reader is not None and bool(reader.unsettled_runs())
                is_new, self._is_missed = is_missed != self._is_missed, is_missed
            version = -1 if reader is None else reader.version_of_data()
            if version == self._version:
                return is_new
            self._version, self._newest = version, 0 if reader is None else reader.last_seq()
            self._found = {} if reader is None else _standings(reader, subjects)
        except AverError:
            self._file = None  # it is opened again; views say what is wrong with it
            return is_new
        return True

    def _open(self) -> Reader | None:
        """The store as it is now, if there is one: another file in its place is another store."""
        try:
            info = os.stat(self._home.database)
        except OSError:
            self._close()
            return None
        if self._reader is None or self._file != (info.st_dev, info.st_ino):
            self._close()
            self._reader = Reader.open(self._home.database)
            self._file, self._version = (info.st_dev, info.st_ino), -1
        return self._reader

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader, self._file = None, None

    def _has_moved(self, subject: Subject, after: int | None) -> bool:
        """Note how a job or run stands that a page shows from now on; whether it has moved since a number."""
        try:
            opened = Reader.open(self._home.database)
            if opened is None:
                return False
            with opened as reader:
                for one, standing in _standings(reader, (subject,)).items():
                    self._standings.setdefault(one, standing)
                find = reader.last_seq_of_job if subject.kind == "job" else reader.last_seq_of
                return after is not None and find(subject.number) > after
        except AverError:
            return False  # the views say what is wrong

    def _changes(self, after: int) -> tuple[int, dict[str, object]]:
        """The number up to which was looked, and the runs and jobs of what came after `after`."""
        unknown: dict[str, object] = {"runs": [], "jobs": [], "is_whole": False}
        if self._newest - after > MOST_EVENTS:
            return self._newest, unknown
        try:
            opened = Reader.open(self._home.database)
            if opened is None:
                return self._newest, unknown
            with opened as reader:
                rows = reader.concerned(after, MOST_EVENTS)
                end = reader.last_seq() if len(rows) == MOST_EVENTS else rows[-1][0] if rows else self._newest
        except AverError:
            return self._newest, unknown  # the views say what is wrong
        runs = {run for _, run, _ in rows}
        jobs = {job for _, _, job in rows if job is not None}
        is_whole = len(rows) < MOST_EVENTS and len(runs) <= MOST_NUMBERS and len(jobs) <= MOST_NUMBERS
        return end, {
            "runs": sorted(runs)[:MOST_NUMBERS],
            "jobs": sorted(jobs)[:MOST_NUMBERS],
            "is_whole": is_whole,
        }


class Pace:
    """How long to wait after an event: two may come at once, and then four a second; in a flood by what they cost."""

    def __init__(self, now: float, used: float) -> None:
        self._ready = AT_ONCE
        self._at_s, self._used_s = now, used
        self.next_at = self.flood_until = self.tick_at = now

    def told(self, changes: int, now: float, used: float) -> None:
        """An event is told now, of so many changes; `used` is the CPU time of this process."""
        passed_s = max(now - self._at_s, LOOK_S)
        self._ready = min(AT_ONCE, self._ready + (now - self._at_s) * A_SECOND) - 1
        self.next_at = now + max(0.0, (1 - self._ready) / A_SECOND)
        cost_s = self._spent(now, used)
        self.flood_until = now + cost_s if changes > FLOOD * passed_s else now

    def ticked(self, now: float, used: float) -> None:
        """A tick is told now: the next one follows when this one is paid for."""
        self._spent(now, used)

    def _spent(self, now: float, used: float) -> float:
        """The pause that pays for the CPU time since the event before; a tick waits for it in any case."""
        pause_s = min(MOST_PAUSE_S, (used - self._used_s) / MOST_SHARE)
        self._at_s, self._used_s = now, used
        self.tick_at = now + max(TICK_S, pause_s)
        return pause_s


def _standings(reader: Reader, subjects: tuple[Subject, ...]) -> dict[Subject, Standing]:
    """How each stands in the store; one that is not there has no entry."""
    found: dict[Subject, Standing] = {}
    for kind in {subject.kind for subject in subjects}:
        read = reader.standings_of_jobs if kind == "job" else reader.standings_of_runs
        numbers = [subject.number for subject in subjects if subject.kind == kind]
        found |= {Subject(kind, number): standing for number, standing in read(numbers).items()}
    return found


def used_s() -> float:
    """The CPU time of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


async def _wait(moved: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(moved.wait(), max(0.0, seconds))
    except TimeoutError:
        pass


def _event(kind: str, seq: int, data: dict[str, object]) -> bytes:
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
