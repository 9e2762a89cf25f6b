"""Orders wait for their folders, and how a job ended waits for its files: what is held back, told and let go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aver.engines.api import Control, Heard, NotListed, ObserveReply, Order, Seen, SubmitReply, Sync, Totals, Unsure
from aver.engines.slurm.remote.engine import SyncedEngine
from aver.engines.slurm.remote.transfer import Outcome
from aver.engines.slurm.states import read_word
from aver.model.evidence import CancelledBefore, HeldBack, LeftQueue, NeverSeen, QueueSaid
from aver.model.job import Request
from aver.model.record import replace

SYNC = Sync(1, 1, ("/here",))
ENDED = QueueSaid(1.0, read_word("COMPLETED"), "", "0:0", "0:0", 1.0, "n1")


class Cluster:
    """The engine inside: what it was given, and what it is made to say."""

    name = "slurm"
    totals = Totals(1, 1, 1)

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.settled: list[str] = []
        self.says: list[Heard] = []
        self.fd = os.eventfd(0)

    def fileno(self) -> int:
        return self.fd

    def attach(self) -> None: ...

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        self.taken += [order.key for order in orders]
        return [Unsure(order.key, "") for order in orders]

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        return [Seen(key) if key in self.taken else NotListed(key) for key in keys]

    def control(self, controls: Sequence[Control]) -> None: ...

    def adopt(self, before: str, key: str) -> None: ...

    def heard(self) -> list[Heard]:
        found, self.says = self.says, []
        return found

    def settle(self, keys: Sequence[str]) -> None:
        self.settled += keys

    def close(self) -> None:
        os.close(self.fd)


class Carrier:
    """Transfers that end when the test says so."""

    def __init__(self) -> None:
        self.wanted: list[tuple[bool, frozenset[str]]] = []
        self.ended: list[Outcome] = []
        self.told = lambda: None

    def want(self, sync: Sync, is_back: bool, keys: set[str]) -> None:
        self.wanted.append((is_back, frozenset(keys)))

    def end(self, is_back: bool, *keys: str, trouble: str = "") -> None:
        self.ended.append(Outcome(SYNC, is_back, frozenset(keys), trouble))
        self.told()

    def outcomes(self) -> list[Outcome]:
        found, self.ended = self.ended, []
        return found

    def close(self) -> None: ...


def order(key: str, sync: Sync | None = SYNC) -> Order:
    return Order(
        key=key, args=("true",), folder="/here", env_file=None, env=(), umask=0o22, limits=(), request=Request(),
        stdin=None, stdout=None, stderr=None, append=False, warning=None, kill_wait_s=1.0, host="lab", sync=sync,
    )  # fmt: skip


def desk(tmp_path: Path) -> tuple[SyncedEngine, Cluster, Carrier]:
    cluster, carrier = Cluster(), Carrier()
    engine = SyncedEngine(cluster, carrier, tmp_path / "files.json", lambda text: None)  # type: ignore[arg-type]
    engine.attach()
    return engine, cluster, carrier


def test_an_order_is_given_when_its_folders_are_there(tmp_path: Path) -> None:
    """Until then it is known, and says why it waits when a transfer fails; one without folders goes at once."""
    engine, cluster, carrier = desk(tmp_path)
    engine.submit([order("a"), order("b", None)])
    assert cluster.taken == ["b"]
    assert engine.observe(["a"]) == [Seen("a")]
    carrier.end(False, "a", trouble="no route")
    told = engine.heard()
    assert [(one.key, one.evidence.reason) for one in told if isinstance(one.evidence, HeldBack)] == [("a", "Transfer")]
    carrier.end(False, "a")
    assert engine.heard() == []
    assert cluster.taken == ["b", "a"]
    engine.submit([order("c")])
    assert cluster.taken == ["b", "a", "c"]
    engine.submit([order("d", replace(SYNC, round=2))])
    assert cluster.taken == ["b", "a", "c"]


def test_an_end_is_told_when_the_files_are_back(tmp_path: Path) -> None:
    """What does not end it passes; what does is told in its order, once, after a transfer that began later."""
    engine, cluster, carrier = desk(tmp_path)
    engine.submit([order("a")])
    carrier.end(False, "a")
    engine.heard()
    running = Heard("a", "squeue", "RUNNING", replace(ENDED, word=read_word("RUNNING")))
    ended, late = Heard("a", "squeue", "COMPLETED", ENDED), Heard("a", "sacct", "", NeverSeen(2.0, 1.0))
    gone, task = Heard("a", "squeue", "", LeftQueue(2.0)), Heard("a.s0.t0", "witness", "", ENDED)
    cluster.says = [running, ended, gone, task, late]
    assert engine.heard() == [running, gone, task]
    assert carrier.wanted[-1] == (True, frozenset({"a"}))
    carrier.end(True, "a", trouble="disk full")
    assert [one.evidence.reason for one in engine.heard() if isinstance(one.evidence, HeldBack)] == ["Transfer"]
    carrier.end(True, "a")
    assert engine.heard() == [ended, late]
    cluster.says = [late]
    assert engine.heard() == [late]


def test_a_cancel_ends_the_waiting(tmp_path: Path) -> None:
    """An order that was not given is CANCELLED; an end that waits for files is told without them."""
    engine, cluster, carrier = desk(tmp_path)
    engine.submit([order("a")])
    engine.control([Control("a", "cancel")])
    assert [type(one.evidence) for one in engine.heard()] == [CancelledBefore]
    carrier.end(False, "a")
    engine.heard()
    assert cluster.taken == []
    engine.submit([order("b")])
    ended = Heard("b", "squeue", "COMPLETED", ENDED)
    cluster.says = [ended]
    assert engine.heard() == []
    engine.control([Control("b", "cancel")])
    assert engine.heard() == [ended]


def test_after_a_restart_ends_still_wait_for_files(tmp_path: Path) -> None:
    """Which attempt has which folders is on disk until its verdict is durable."""
    engine, _, carrier = desk(tmp_path)
    engine.submit([order("a")])
    carrier.end(False, "a")
    engine.heard()
    again, cluster, carrier = desk(tmp_path)
    ended = Heard("a", "squeue", "COMPLETED", ENDED)
    cluster.says = [ended]
    assert again.heard() == []
    carrier.end(True, "a")
    assert again.heard() == [ended]
    again.settle(["a"])
    assert cluster.settled == ["a"]
    third, cluster, _ = desk(tmp_path)
    cluster.says = [ended]
    assert third.heard() == [ended]


def test_a_damaged_note_is_said_and_loses_no_verdict(tmp_path: Path) -> None:
    """Files may stay on the host; how jobs ended is told."""
    (tmp_path / "files.json").write_bytes(b'{"a": [1')
    told: list[str] = []
    cluster = Cluster()
    engine = SyncedEngine(cluster, Carrier(), tmp_path / "files.json", told.append)  # type: ignore[arg-type]
    engine.attach()
    assert "can't be read" in told[0]
    ended = Heard("a", "squeue", "COMPLETED", ENDED)
    cluster.says = [ended]
    assert engine.heard() == [ended]
