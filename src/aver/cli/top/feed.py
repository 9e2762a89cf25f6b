"""What `aver top` shows, read once in a while: few rows of the store, however many jobs there are, and /proc."""

from __future__ import annotations

import time

from aver.cli.explanation import MachineUse, waiting_words
from aver.cli.session import Session
from aver.client.use.now import Meter
from aver.errors import AverError
from aver.model import reasons
from aver.model.record import Record
from aver.model.states import SETTLED, UNSETTLED, State
from aver.render import verdict
from aver.store.read.job_list import Wanted, find_jobs
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow

WAITING = frozenset({State.PENDING, State.SUBMITTED})
ACTIVE = UNSETTLED - WAITING
BAD = SETTLED - {State.COMPLETED, State.SKIPPED}
VIEWS = ("all", "running", "waiting", "failed", "done")
STATES = {"running": ACTIVE, "waiting": WAITING, "failed": BAD, "done": SETTLED}
MOST_ROWS = 300  # of each kind
MOST_MEASURED = 64
MOST_EXPLAINED = 3


class Item(Record):
    """One job as it is shown."""

    job: int
    run: int
    name: str
    state: State
    time: str
    cpu: str  # CPUs that it uses now, and how many it asked for
    mem: str  # memory that it has now, and its limit
    note: str
    is_held: bool = False


class Snapshot(Record):
    counts: tuple[tuple[str, int], ...]  # running, waiting, failed: of all jobs
    items: tuple[Item, ...]
    left_out: int
    at: float


class Feed:
    """Reads; `read` is called again and again, and remembers what was measured before."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._meter = Meter()

    def read(self, view: str, name: str) -> Snapshot:
        """The jobs of this view whose names match; "" is any."""
        now = time.time()
        reader = self._session.reader
        if reader is None:
            return Snapshot((), (), 0, now)
        pattern = None if not name else name if any(sign in name for sign in "*?[") else f"*{name}*"
        kinds = [ACTIVE, WAITING, BAD] if view == "all" else [STATES[view]]
        rows: list[JobRow] = []
        total = 0
        for states in kinds:
            numbers, count = find_jobs(reader, Wanted(states=states, name=pattern), MOST_ROWS, now)
            rows += reader.listed(numbers)
            total += count
        counts = reader.unsettled_counts()
        failed = find_jobs(reader, Wanted(states=BAD), 0, now)[1]
        self._session.mask({row.run for row in rows})
        return Snapshot(
            (
                ("running", sum(counts.get(state, 0) for state in ACTIVE)),
                ("waiting", sum(counts.get(state, 0) for state in WAITING)),
                ("failed", failed),
            ),
            tuple(self._items(reader, rows, now)),
            total - len(rows),
            now,
        )

    def _items(self, reader: Reader, rows: list[JobRow], now: float) -> list[Item]:
        measured = self._measure(reader, [row for row in rows if row.state in ACTIVE][:MOST_MEASURED], now)
        explained, machine = 0, MachineUse(self._session)
        items = []
        for row in rows:
            note = verdict.short_words(row.state, row.exit, row.reason)
            if row.state is State.PENDING and explained < MOST_EXPLAINED:
                explained += 1
                note = self._waits_for(row, machine) or note
            cpu, mem = measured.get(row.id, ("?", "?") if row.state is State.RUNNING else ("", ""))
            took = row.elapsed_s
            if took is None and row.started_at is not None and row.state in UNSETTLED:
                took = now - row.started_at
            text = "" if took is None else verdict.duration_words(took)
            name = self._session.output.masking.whole(row.name)
            note, is_held = self._session.output.masking.whole(note), row.reason == reasons.JOB_HELD_USER
            items.append(Item(row.id, row.run, name, row.state, text, cpu, mem, note, is_held))
        return items

    def _waits_for(self, row: JobRow, machine: MachineUse) -> str:
        try:
            words = waiting_words(self._session, row, machine=machine)
        except AverError:
            return ""
        return f"waiting {words}" if words else ""

    def _measure(self, reader: Reader, rows: list[JobRow], now: float) -> dict[int, tuple[str, str]]:
        """What jobs of this machine use now, by job; others are left out."""
        found = {}
        for job, use in self._meter.measure(reader, rows, now).items():
            cpus = "?" if use.cpus_now is None else f"{use.cpus_now:.1f}"
            limit = "" if use.mem_bytes is None else f"/{verdict.limit_words(use.mem_bytes)}"
            found[job] = (f"{cpus}/{use.cpus}", verdict.bytes_words(use.memory_now_bytes) + limit)
        return found
