"""Commits that are slow or fail: nothing that was decided is lost, and nothing is shown that is not durable."""

from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_machine import ORIGIN, job
from test_machine_cluster import Desk, record

from aver.coordinator import commit_thread
from aver.coordinator import loop as loop_module
from aver.coordinator.commit_thread import Committer
from aver.engines.slurm.states import read_word
from aver.errors import CantWriteError, InternalError
from aver.model.events import Event, RunMoved
from aver.model.evidence import LeftQueue, QueueSaid, Taken
from aver.model.job import FlowSpec, Submission
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer


class SlowWriter(Writer):
    """Its disk does not answer before it may."""

    may_go = threading.Event()

    def commit(self, events: Sequence[Event]) -> int:
        self.may_go.wait(60)
        return super().commit(events)


class WriterWithABug(Writer):
    def commit(self, events: Sequence[Event]) -> int:
        raise OverflowError("int too large to convert to float")


class BugInARun(Writer):
    run = 0

    def commit(self, events: Sequence[Event]) -> int:
        if any(event.run == self.run for event in events):
            raise OverflowError("int too large to convert to float")
        return super().commit(events)


class FullDisk(Writer):
    is_full = False

    def commit(self, events: Sequence[Event]) -> int:
        if self.is_full:
            raise CantWriteError("can't write aver.db: No space left on device")
        return super().commit(events)


def state_of(desk: Desk, number: int) -> State | None:
    reader = Reader.open(desk.home.database)
    assert reader is not None
    with reader:
        found = reader.job(number)
    return None if found is None else found.state


def end_of(key: str) -> list[Taken | QueueSaid | LeftQueue]:
    return [Taken(1.0, "7"), QueueSaid(2.0, read_word("RUNNING")), LeftQueue(3.0)]


def test_who_leaves_waits_for_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is not done when it is first looked for: it is waited for, and what was decided is stored."""
    SlowWriter.may_go.set()
    desk = Desk(tmp_path / "home", SlowWriter)
    key = desk.start()
    SlowWriter.may_go.clear()
    desk.cluster.say(key, *end_of(key), record(key, code=3), QueueSaid(4.0, read_word("FAILED"), exit="3:0"))
    desk.turn()
    looks = []

    def look_early(*asked: object) -> tuple[list[object], list[object], list[object]]:
        looks.append(asked)
        if len(looks) == 1:
            return [], [], []
        SlowWriter.may_go.set()
        return really(*asked)  # type: ignore[arg-type]

    really = select.select
    monkeypatch.setattr(loop_module.select, "select", look_early)
    desk.loop._leave()
    assert len(looks) > 1
    assert state_of(desk, 1) is State.FAILED


def test_what_is_decided_while_the_disk_is_full_is_kept(tmp_path: Path) -> None:
    """A submission is given back, with the reason; a verdict is kept and stored when there is room again."""
    desk = Desk(tmp_path / "home", FullDisk)
    key = desk.start()
    desk.cluster.say(key, *end_of(key), record(key, code=3), QueueSaid(4.0, read_word("FAILED"), exit="3:0"))
    FullDisk.is_full = True
    try:
        desk.machine.submit(Submission(FlowSpec("more", (job("b"),), is_single=True), ORIGIN), 1000.0)
        desk.turn()
        select.select([desk.committer], [], [], 60)
        desk.loop._finish_commit()
        assert list(desk.machine.runs) == [1]
        assert state_of(desk, 1) is not State.FAILED
        with pytest.raises(CantWriteError, match="No space left"):
            desk.loop._commits.check_writable()
    finally:
        FullDisk.is_full = False
    desk.loop._commits.hurry()
    desk.commit()
    desk.loop._commits.check_writable()
    assert (state_of(desk, 1), state_of(desk, 2)) == (State.FAILED, None)
    desk.close()


def test_what_is_submitted_while_a_commit_fails_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its submitter is told that it was not taken, and may submit it again: it must not run as well."""
    monkeypatch.setattr(commit_thread, "FEW", 0)
    desk = Desk(tmp_path / "home", FullDisk)
    key = desk.start()
    FullDisk.is_full = True
    try:
        desk.cluster.say(key, *end_of(key), record(key, code=3), QueueSaid(4.0, read_word("FAILED"), exit="3:0"))
        desk.turn()
        assert desk.committer.is_busy
        desk.machine.submit(Submission(FlowSpec("more", (job("b"),), is_single=True), ORIGIN), 1000.0)
        desk.turn()
        select.select([desk.committer], [], [], 60)
        desk.loop._finish_commit()
        assert list(desk.machine.runs) == [1]
    finally:
        FullDisk.is_full = False
    desk.loop._commits.hurry()
    desk.commit()
    assert (state_of(desk, 1), state_of(desk, 2)) == (State.FAILED, None)
    desk.close()


def test_a_bug_in_one_run_keeps_no_other_from_the_store(tmp_path: Path) -> None:
    """Its events wait, it is shown as it was, and that is said; what can be stored again is stored."""
    desk = Desk(tmp_path / "home", BugInARun)
    keys = [desk.start()]
    flow = FlowSpec("more", (job("b", engine="slurm"),), is_single=True)
    desk.machine.submit(Submission(flow, ORIGIN), 1000.0)
    desk.home.env(2).write_bytes(b"")
    desk.turn()
    desk.commit()
    keys += [order.key for order in desk.cluster.orders if order.key not in keys]
    BugInARun.run = 1
    try:
        for key in keys:
            desk.cluster.say(key, *end_of(key), record(key, code=3), QueueSaid(4.0, read_word("FAILED"), exit="3:0"))
        desk.turn()
        desk.commit()
        assert state_of(desk, 1) is not State.FAILED
        assert state_of(desk, 2) is State.FAILED
        assert "run 1 can't be stored" in desk.loop._commits.problem
        desk.loop._commits.check_writable()
        assert list(desk.machine.runs) == [1]
    finally:
        BugInARun.run = 0
    desk.loop._commits._aside_at = 0.0
    desk.turn()
    desk.commit()
    assert state_of(desk, 1) is State.FAILED
    assert desk.loop._commits.problem == ""
    desk.close()


@pytest.mark.parametrize("is_quick", [False, True])
def test_a_bug_in_the_store_leaves_nobody_waiting(tmp_path: Path, is_quick: bool) -> None:
    """In the committer's thread and in the caller's: it is told as what kept the batch from being stored."""
    committer = Committer(WriterWithABug.open(tmp_path / "aver.db"))
    committer._is_quick = is_quick
    if not committer.begin([RunMoved(1.0, 1, State.RUNNING)]):
        assert select.select([committer], [], [], 10)[0], "the committer's thread died"
    assert isinstance(committer.finish(), InternalError)
    committer.close()
