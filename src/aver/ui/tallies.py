"""Counts of runs by state, and what else needs a look at all jobs of a run: made once for each last event of a run."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from aver.model.record import Record
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.read.rows import RunRow

MOST_RUNS = 2000
LONG_S = 0.2
REST = 10

Kept = TypeVar("Kept")


class Tally(Record):
    counts: dict[State, int]
    believed: int


class Memory(Generic[Kept]):
    """Remembers what was made of a run, as long as the run has no newer event.

    Of a run that moves, what took long to make is made again only after ten times as long: a page that is open must
    not keep a CPU busy. Of a settled run it is always that of its last event.
    """

    def __init__(self, most: int = MOST_RUNS) -> None:
        self._most = most
        self._kept: OrderedDict[int, tuple[int, str, float, Kept]] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.Lock()

    def get(self, reader: Reader, row: RunRow, make: Callable[[], Kept]) -> Kept:
        run, seq = row.id, reader.last_seq_of(row.id)
        with self._making:
            with self._lock:
                found = self._kept.get(run)
            if found is not None and found[1] == str(reader.path):
                may_rest = not row.state.is_settled and time.monotonic() < found[2]
                if found[0] == seq or may_rest:
                    return found[3]
            begun = time.monotonic()
            made = make()
            took = time.monotonic() - begun
            return self._keep(run, (seq, str(reader.path), time.monotonic() + REST * took * (took > LONG_S), made))

    def _keep(self, run: int, entry: tuple[int, str, float, Kept]) -> Kept:
        with self._lock:
            self._kept[run] = entry
            self._kept.move_to_end(run)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return entry[3]


def tally_of(reader: Reader, run: int) -> Tally:
    found = reader.tally(run)
    believed = sum(few for state, (_, few) in found.items() if state is not State.UNVERIFIED)
    return Tally({state: count for state, (count, _) in found.items()}, believed)
