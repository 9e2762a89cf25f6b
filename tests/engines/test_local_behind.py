"""Orders that the engine puts behind others, with real witnesses."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.engines.api import Control, Heard, Order, Submitted, Totals
from aver.engines.local import engine as local
from aver.model.evidence import NotTaken, RoomTaken, WitnessRecord, WitnessStart, WitnessVanished
from aver.model.job import Request
from aver.witness import binary

TRIALS = 20  # a machine that stands still for 100 ms makes a witness give its orders back


class Lab:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = local.LocalEngine(folder, binary(), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
        self.heard: list[Heard] = []

    def order(self, key: str, text: str = "true", lane: str = "1.0", is_behind: bool = False) -> Order:
        return Order(
            key=key, args=("/bin/sh", "-c", f"echo {key} >> {self.folder}.ran; {text}"), folder="/", env_file=None,
            env=(), umask=0o22, limits=(), request=Request(), stdin=None, stdout=None, stderr=None, append=False,
            warning=None, kill_wait_s=1.0, lane=lane, is_behind=is_behind,
        )  # fmt: skip

    def submit(self, *orders: Order) -> None:
        assert [type(reply) for reply in self.engine.submit(orders)] == [Submitted] * len(orders)

    def said_of(self, key: str) -> list[type]:
        return [type(one.evidence) for one in self.heard if one.key == key]

    def hear(self, kind: type, key: str) -> None:
        """Listen until this is said of the attempt."""
        end = time.monotonic() + 30
        while kind not in self.said_of(key):
            assert time.monotonic() < end, self.heard
            self.heard += self.engine.heard()
            time.sleep(0.001)

    def ran(self) -> list[str]:
        path = Path(f"{self.folder}.ran")
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    folder = tmp_path / "home" / "witness"
    folder.mkdir(parents=True)
    lab = Lab(folder)
    lab.engine.attach()
    lab.submit(lab.order("warm-up"))  # from its hello on, a witness may have orders ahead
    lab.hear(WitnessRecord, "warm-up")
    yield lab
    lab.engine.close()


def test_it_begins_when_the_one_before_it_has_ended(lab: Lab) -> None:
    """In the same witness, and the engine says whose room it takes right after that one's end."""
    for trial in range(TRIALS):
        first, next_one = f"a{trial}", f"b{trial}"
        lab.submit(lab.order(first), lab.order(next_one, "sleep 0.05", is_behind=True))
        lab.hear(WitnessRecord, first)
        lab.hear(WitnessRecord if RoomTaken in lab.said_of(next_one) else NotTaken, next_one)
        if NotTaken not in lab.said_of(next_one):
            break
    assert lab.said_of(next_one)[0] is RoomTaken
    keys = [one.key for one in lab.heard if isinstance(one.evidence, (WitnessRecord, RoomTaken))]
    assert keys.index(next_one) == keys.index(first) + 1
    assert lab.ran()[-2:] == [first, next_one]
    assert len(list(lab.folder.glob("*.log"))) == 1


def test_without_one_of_its_lane_it_is_not_taken(lab: Lab) -> None:
    lab.submit(lab.order("a", lane="1.0"), lab.order("b", lane="1.1", is_behind=True))
    lab.hear(NotTaken, "b")
    lab.hear(WitnessRecord, "a")
    assert "b" not in lab.ran()


def test_behind_a_long_one_it_comes_back(lab: Lab) -> None:
    lab.submit(lab.order("a", "sleep 60"), lab.order("b", is_behind=True))
    lab.hear(NotTaken, "b")
    lab.engine.control([Control("a", "cancel", signal=9)])
    lab.hear(WitnessRecord, "a")
    assert lab.ran() == ["warm-up", "a"]


def test_a_cancelled_one_comes_back_or_ends(lab: Lab) -> None:
    """It never runs after it came back; and the job before it is not taken for cancelled."""
    lab.submit(lab.order("a", "sleep 60"), lab.order("b", is_behind=True))
    lab.engine.control([Control("b", "cancel")])
    lab.hear(NotTaken, "b")
    lab.engine.control([Control("a", "cancel", signal=9)])
    lab.hear(WitnessRecord, "a")
    assert "b" not in lab.ran()


def test_of_a_witness_that_is_killed_they_come_back(lab: Lab) -> None:
    """The one that ran is lost, and what was behind it has not begun."""
    lab.submit(lab.order("a", "sleep 60"), lab.order("b", is_behind=True))
    (witness,) = lab.engine._children
    lab.hear(WitnessStart, "a")
    os.kill(witness, signal.SIGKILL)
    lab.hear(NotTaken, "b")
    lab.hear(WitnessVanished, "a")
    assert "b" not in lab.ran()


def test_of_a_flow_s_job_that_is_over_its_end_is_all_that_is_heard(lab: Lab) -> None:
    """It also says when the job began. A job alone is heard of twice, and so is one that goes on for a while."""
    for trial in range(TRIALS):
        lab.submit(lab.order(f"a{trial}"))
        time.sleep(0.02)  # both lines of the witness have come
        lab.hear(WitnessRecord, f"a{trial}")
    assert any(lab.said_of(f"a{trial}") == [WitnessRecord] for trial in range(TRIALS)), lab.heard
    lab.submit(lab.order("alone", lane=""))
    lab.hear(WitnessRecord, "alone")
    assert lab.said_of("alone") == [WitnessStart, WitnessRecord]
    lab.submit(lab.order("long", "sleep 0.3"))
    lab.hear(WitnessRecord, "long")
    assert lab.said_of("long") == [WitnessStart, WitnessRecord]


def test_a_cancelled_one_that_its_witness_never_began_is_not_given_again(lab: Lab) -> None:
    """The cancellation went with the witness: the next one would know nothing of it."""
    (witness,) = lab.engine._children
    os.kill(witness, signal.SIGSTOP)
    lab.submit(lab.order("a"))
    lab.engine.control([Control("a", "cancel")])
    os.kill(witness, signal.SIGKILL)
    lab.hear(NotTaken, "a")
    assert "a" not in lab.ran()
