"""Threads for what may block: lanes do not hold each other up, and nothing that is raised there is lost."""

from __future__ import annotations

import select
import threading

import pytest

from aver.coordinator import background
from aver.coordinator.background import Background, Failed

DEADLINE_S = 60.0


def take_all(made: Background, wanted: int, seen: list[object]) -> None:
    while len(seen) < wanted:
        assert select.select([made], [], [], DEADLINE_S)[0], f"only {seen}"
        made.take()


def test_a_lane_is_in_order_and_holds_up_no_other() -> None:
    """Calls of one lane run one after the other; what hangs in another does not matter."""
    made, seen, hang = Background(), list[object](), threading.Event()
    made.run("slow", hang.wait, seen.append)
    made.run("slow", lambda: "after", seen.append)
    for number in range(20):
        made.run("quick", lambda number=number: number, seen.append)  # type: ignore[misc]
    take_all(made, 20, seen)
    assert seen == list(range(20))
    assert made.is_busy
    hang.set()
    take_all(made, 22, seen)
    assert seen[20:] == [True, "after"]
    assert not made.is_busy


def test_what_is_handed_over_is_called_by_the_one_who_takes() -> None:
    made, seen = Background(), list[object]()
    made.run("a", threading.get_ident, lambda found: seen.append((found, threading.get_ident())))
    take_all(made, 1, seen)
    ((there, here),) = seen  # type: ignore[misc]
    assert here == threading.get_ident() != there


def test_a_call_that_raises_is_told_as_failed(capfd: pytest.CaptureFixture[str]) -> None:
    """A bug, or a lack of memory, ends the call and nothing else."""
    made, seen = Background(), list[object]()

    def call() -> None:
        raise MemoryError("too much")

    made.run("a", call, seen.append)
    made.run("a", lambda: 1, seen.append)
    take_all(made, 2, seen)
    assert seen == [Failed("MemoryError: too much"), 1]
    assert "MemoryError" in capfd.readouterr().err


def test_lanes_beyond_the_threads_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are so many threads and no more; all lanes get their turn."""
    monkeypatch.setattr(background, "MOST_THREADS", 2)
    made, seen, hang = Background(), list[object](), threading.Event()
    made.run("slow", hang.wait, seen.append)
    for number in range(30):
        made.run(f"lane {number}", lambda number=number: number, seen.append)  # type: ignore[misc]
    take_all(made, 30, seen)
    assert sorted(seen, key=str) == sorted(range(30), key=str)
    hang.set()
    take_all(made, 31, seen)
