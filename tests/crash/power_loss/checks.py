"""What must hold of a home that was opened after a power cut, whatever survived of it.

`Facts` are what the trace says was so before the cut: what was accepted, shown and begun. `problems` compares.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from aver.model import reasons
from aver.model.events import AttemptPlanned, Observed
from aver.model.states import State
from aver.store.open import connect
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow
from power_loss.disk import Disk, Tree
from power_loss.trace import Kind, Op
from power_loss.workload import HOME, expected
from store_replay import replay

BEGIN = re.compile(rb'\{"ev":"begin","key":"([^"]+)"')
StoredRow = tuple[object, ...]


@dataclass(slots=True)
class Facts:
    """What was known of the recorded home at each position of the trace."""

    events: list[StoredRow]  # all that were ever committed
    accepted: list[tuple[int, int]] = field(default_factory=list)  # position, run
    shown: list[tuple[int, int, str]] = field(default_factory=list)  # position, job, its row
    read: list[tuple[int, int]] = field(default_factory=list)  # position, events that could be read
    begun: list[tuple[int, str]] = field(default_factory=list)  # position, key of an attempt
    files: list[tuple[int, str, bytes]] = field(default_factory=list)  # position, path, content: of accepted runs

    @classmethod
    def of(cls, ops: Sequence[Op], database: Path) -> Facts:
        """`database` is the recorded one, as it was in the end."""
        facts = cls(stored_events(database))
        disk = Disk()
        for position, op in enumerate(ops, start=1):
            disk.apply(op)
            if op.kind is Kind.WRITE:
                facts.begun += [(position, found.decode()) for found in BEGIN.findall(op.data)]
            if op.kind is not Kind.MARK:
                continue
            match op.mark:
                case {"accepted": int(run)}:
                    facts.accepted.append((position, run))
                    needed = re.compile(f"{HOME}/(env/key|env/{run}\\..*|scripts/{run}/.*|stdin/{run})")
                    facts.files += [
                        (position, path, node.data) for path, node in disk.as_seen().items() if needed.fullmatch(path)
                    ]
                case {"shown": int(job), "row": str(row)}:
                    facts.shown.append((position, job, row))
                case {"seq": int(seq)}:
                    facts.read.append((position, seq))
        return facts


def stored_events(database: Path) -> list[StoredRow]:
    """All events, as they are stored; none where there is no store."""
    if not database.exists() or not database.stat().st_size:
        return []
    with closing(connect(database, "ro")) as connection:
        has_tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone()
        return connection.execute("SELECT * FROM events ORDER BY seq").fetchall() if has_tables else []


def damage(facts: Facts, cut: int, tree: Tree) -> Iterator[str]:
    """One sentence for each file of an accepted run that is not whole; the workload removes none of them."""
    for position, path, data in facts.files:
        node = tree.get(path)
        if position <= cut and (node is None or node.data != data):
            yield f"{path}, of an accepted run, is {'lost' if node is None else 'damaged'}"


def problems(facts: Facts, cut: int, home: Path, ledger: Path) -> Iterator[str]:
    """One sentence for each promise that is broken; `ledger` has the keys of what ran after the cut."""
    database = home / "aver.db"
    events = stored_events(database)
    kept = _common(facts.events, events)
    readable = max((seq for position, seq in facts.read if position <= cut), default=0)
    if kept < readable:
        yield f"{readable} events could be read before the cut, {kept} are left"
    if not events:
        yield from (f"run {run} was accepted and is lost" for position, run in facts.accepted if position <= cut)
        return
    with closing(connect(database, "ro")) as connection:
        try:
            answer = connection.execute("PRAGMA integrity_check").fetchall()
        except sqlite3.Error as error:
            answer = [(str(error),)]
    if answer != [("ok",)]:
        yield f"the database is damaged: {answer[:3]}"
        return
    yield from replay(database)
    reader = Reader.open(database)
    assert reader is not None
    with reader:
        yield from _lost(facts, cut, reader)
        yield from _doubled(reader)
        begun = {key for position, key in facts.begun if position <= cut}
        yield from _untrue(reader, begun, ledger.read_text().split() if ledger.exists() else [], kept)


def _common(before: list[StoredRow], after: list[StoredRow]) -> int:
    """How many events are as they were."""
    for number, (then, now) in enumerate(zip(before, after, strict=False)):
        if then != now:
            return number
    return min(len(before), len(after))


def _lost(facts: Facts, cut: int, reader: Reader) -> Iterator[str]:
    """Nothing that was accepted or shown is lost or changed."""
    for position, run in facts.accepted:
        if position <= cut and reader.run(run) is None:
            yield f"run {run} was accepted and is lost"
    last = {job: row for position, job, row in facts.shown if position <= cut}
    for job, row in last.items():
        found = reader.job(job)
        if repr(found) != row:
            yield f"job {job} was shown as {row} and is {found}"


def _doubled(reader: Reader) -> Iterator[str]:
    verdicts = Counter(
        (one.event.job, one.event.attempt)
        for one in reader.events()
        if isinstance(one.event, Observed) and one.event.verdict is not None
    )
    yield from (f"attempt {key} has {count} verdicts" for key, count in verdicts.items() if count > 1)


def _untrue(reader: Reader, begun: set[str], ran: list[str], kept: int) -> Iterator[str]:
    """Each job has ended as it does when it runs, or is said to be lost with its machine; nothing ran twice."""
    planned = {}
    planned_before = set()
    for one in reader.events():
        if isinstance(one.event, AttemptPlanned):
            planned[one.event.key] = one.event.job
            if one.seq <= kept:
                planned_before.add(one.event.key)
    for key in sorted(begun - planned_before):
        yield f"attempt {key} had begun, and nobody had planned it"
    yield from (f"attempt {key} was run {count} times" for key, count in Counter(ran).items() if count > 1)
    yield from (f"attempt {key} had begun before the cut, and was run again" for key in sorted(begun & set(ran)))
    lost_jobs = {planned[key] for key in planned_before}
    states = {(job.run, job.name): job.state for run in reader.runs() for job in reader.jobs(run=run.id)}
    for run in reader.runs():
        for job in reader.jobs(run=run.id):
            if not _is_true(job, states, job.id in lost_jobs):
                yield f"job {job.id} {job.name} is {job.state} {job.reason} {job.exit} by {job.source}: {job.detail}"


def _is_true(job: JobRow, states: dict[tuple[int, str], State], was_planned: bool) -> bool:
    if (job.state, job.exit) in expected(job):
        return job.verified is True or job.state is not State.COMPLETED
    if job.state is State.NODE_FAIL:
        return was_planned and (job.exit, job.source, job.reason) == (None, "machine", reasons.NODE_DOWN)
    need = {"second": "first", "last": "again"}.get(job.name)
    return job.state is State.SKIPPED and need is not None and states[job.run, need] is State.NODE_FAIL
