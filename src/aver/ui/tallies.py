"""Counts of runs by state, and what else needs a look at all jobs of a run: made once for each last event of a run."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from aver.model.record import Record
from aver.model.states import State
from aver.store.read.reader import Reader

MOST_RUNS = 2000

Kept = TypeVar("Kept")


class Tally(Record):
    counts: dict[State, int]
    believed: int


class Memory(Generic[Kept]):
    """Remembers what was made of a run, as long as the run has no newer event."""

    def __init__(self, most: int = MOST_RUNS) -> None:
        self._most = most
        self._kept: OrderedDict[int, tuple[int, str, Kept]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, reader: Reader, run: int, make: Callable[[], Kept]) -> Kept:
        seq = reader.last_seq_of(run)
        with self._lock:
            found = self._kept.get(run)
        if found is not None and found[0] == seq and found[1] == str(reader.path):
            return found[2]
        made = make()
        with self._lock:
            self._kept[run] = (seq, str(reader.path), made)
            self._kept.move_to_end(run)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def tally_of(reader: Reader, run: int) -> Tally:
    found = reader.tally(run)
    believed = sum(few for state, (_, few) in found.items() if state is not State.UNVERIFIED)
    return Tally({state: count for state, (count, _) in found.items()}, believed)
