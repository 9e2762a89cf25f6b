"""Which runs and jobs have changed, as server-sent events, for all open pages together.

The store is looked at only while a page is open. An event's id is the number up to which everything was looked at, so
a page that comes back with it misses nothing; what is sent was committed before. All pages get an event at the same
moment, so that they share the answers to what they ask then. Pages ask only when an event tells them to: `change`, or
`tick` for what moves without a change, such as the memory of a running job. In a flood of changes, and between ticks,
the pause follows the CPU time that was used since the event before, pages' questions included: open pages take little
from the jobs of a busy machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable

import anyio.to_thread

from aver.errors import AverError
from aver.home import Home
from aver.store.read.reader import Reader

LOOK_S = 0.05
AT_ONCE, A_SECOND = 2.0, 4.0  # events
FLOOD = 200.0  # changes a second: nobody can read so many
MOST_PAUSE_S = 5.0
MOST_SHARE = 0.01  # of a CPU, in a flood, for all pages together
FLOOD_LOOK_S = 0.25  # between looks in a flood: it is over when nothing has changed in between
TICK_S = 2.0
BEAT_S = 5.0
PEER_S = 1.0  # how often the coordinator is looked for: one that is missing is missed where runs are not settled
MOST_EVENTS = 5000  # that are looked through for one event; of more, everything may have changed
MOST_NUMBERS = 500


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
        self.told = 0  # how many events were sent to all pages: `told` of the events counts them
        self._is_missed = False
        self._peer_at = 0.0
        self._pages = 0
        self._moved = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    async def stream(self, after: int | None) -> AsyncIterator[bytes]:
        """The events for one page, from a number on; None: from now on."""
        self._pages += 1
        try:
            if self._watch is None or self._watch.done():
                await anyio.to_thread.run_sync(self._look)
                self._seq = self._newest
                self._watch = asyncio.create_task(self._look_again())
            seq = self._seq if after is None or after > self._seq else after
            yield b"retry: 1000\n\n" + self._beat(seq)
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
                        event = _event("change", until, data)
                    seq, ticks = until, self._ticks
                    yield event
                elif ticks != self._ticks:
                    ticks = self._ticks
                    yield _event("tick", seq, {"told": self.told})
                elif told != self._is_missed or time.monotonic() >= beat_at + BEAT_S:
                    told, beat_at = self._is_missed, time.monotonic()
                    yield self._beat(seq)
                else:
                    await _wait(moved, min(1.0, beat_at + BEAT_S - time.monotonic()))
        finally:
            self._pages -= 1

    def _beat(self, seq: int) -> bytes:
        return _event("beat", seq, {"at": time.time(), "is_coordinator_missed": self._is_missed})

    async def _look_again(self) -> None:
        pace, is_new = Pace(time.monotonic(), used_s()), False
        while self._pages and not self.is_over():
            has_moved = await anyio.to_thread.run_sync(self._look)
            is_new, now = is_new or has_moved, time.monotonic()
            if has_moved and now < pace.flood_until:
                await asyncio.sleep(FLOOD_LOOK_S)
                continue
            if is_new:
                before, end, is_new = self._seq, self._newest, False
                pause_s = 0.0
                if end > before:
                    self.told += 1
                    end, data = await anyio.to_thread.run_sync(self._changes, before)
                    self._news = before, end, _event("change", end, {**data, "told": self.told})
                    pause_s = pace.told(end - before, now, used_s())
                self._seq = end
                self._tell()
                await asyncio.sleep(pause_s)
            elif now >= pace.tick_at:
                pace.ticked(now, used_s())
                self._ticks += 1
                self.told += 1
                self._tell()
            await asyncio.sleep(LOOK_S)
        self._close()

    def _tell(self) -> None:
        """Wake all pages' streams."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _look(self) -> bool:
        """Look at the store, and now and then for the coordinator; whether anything is new."""
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
        self.flood_until = self.tick_at = now

    def told(self, changes: int, now: float, used: float) -> float:
        """An event is told now, of so many changes; `used` is the CPU time of this process. Return the pause."""
        passed_s = max(now - self._at_s, LOOK_S)
        self._ready = min(AT_ONCE, self._ready + (now - self._at_s) * A_SECOND) - 1
        pause_s = max(0.0, (1 - self._ready) / A_SECOND)
        cost_s = self._spent(now, used)
        self.flood_until = now + cost_s if changes > FLOOD * passed_s else now
        return pause_s

    def ticked(self, now: float, used: float) -> None:
        """A tick is told now: the next one follows when this one is paid for."""
        self._spent(now, used)

    def _spent(self, now: float, used: float) -> float:
        """The pause that pays for the CPU time since the event before; a tick waits for it in any case."""
        pause_s = min(MOST_PAUSE_S, (used - self._used_s) / MOST_SHARE)
        self._at_s, self._used_s = now, used
        self.tick_at = now + max(TICK_S, pause_s)
        return pause_s


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
