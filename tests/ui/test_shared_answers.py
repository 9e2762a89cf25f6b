"""One answer for many pages that ask the same, and never one of before the question."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from aver.ui.feed import FLOOD, MOST_PAUSE_S, MOST_SHARE, Pace
from aver.ui.shared import Shared
from live_home import wait_for


def test_those_who_ask_while_one_is_answered_share_the_next_answer() -> None:
    """The first asks alone; nine come while it is answered: one more answer is made, for all of them."""
    shared: Shared[int] = Shared()
    gate, made = threading.Event(), []

    def make() -> int:
        made.append(len(made) + 1)
        number = made[-1]
        gate.wait(60)
        return number

    with ThreadPoolExecutor(10) as threads:
        first = threads.submit(shared.get, "now", make)
        wait_for(lambda: made, "the first answer is begun")
        others = [threads.submit(shared.get, "now", make) for _ in range(9)]
        wait_for(lambda: shared._entries["now"].users == 10, "nine wait")
        gate.set()
        assert first.result(60) == 1
        assert {other.result(60) for other in others} == {2}
    assert made == [1, 2]
    assert shared._entries == {}


def test_a_later_question_gets_a_later_answer() -> None:
    """Nothing is kept once nobody asks; other questions have their own answers."""
    shared: Shared[str] = Shared()
    answers = iter("abc")
    assert shared.get("now", lambda: next(answers)) == "a"
    assert shared.get("now", lambda: next(answers)) == "b"
    assert shared.get("runs", lambda: next(answers)) == "c"


def test_an_answer_that_fails_is_made_again() -> None:
    shared: Shared[int] = Shared()

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        shared.get("now", fail)
    assert shared.get("now", lambda: 3) == 3
    assert shared._entries == {}


def test_two_events_come_at_once_then_four_a_second_and_in_a_flood_by_their_cost() -> None:
    pace, now = Pace(), 100.0
    assert pace.told(1, now, 5.0) == 0
    assert pace.told(1, now, 5.1) == 0.25
    assert pace.told(1, now + 0.25, 5.2) == 0.25
    assert pace.told(FLOOD, now + 60, 6.0) == MOST_PAUSE_S
    assert pace.told(FLOOD, now + 70, 6.06) == pytest.approx(0.06 / MOST_SHARE)
    assert pace.told(1, now + 80, 7.0) == 0
