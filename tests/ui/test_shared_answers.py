"""One answer for many pages that ask the same, never one of before the question, and the pace of events."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from aver.ui.feed import FLOOD, MOST_PAUSE_S, MOST_SHARE, TICK_S, Pace
from aver.ui.shared import MOST_KEPT, Shared
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


def test_pages_that_follow_the_same_event_share_its_answer() -> None:
    """Also one that comes later; who follows a newer event, or none, gets a new answer."""
    told = [1]
    shared: Shared[str] = Shared(lambda: told[0])
    answers = iter("abcd")
    assert shared.get("now", lambda: next(answers), 1) == "a"
    assert shared.get("now", lambda: next(answers), 1) == "a"
    assert shared.get("now", lambda: next(answers)) == "b"
    told[0] = 2
    assert shared.get("now", lambda: next(answers), 2) == "c"
    assert shared.get("now", lambda: next(answers), 1) == "c"
    assert shared.get("now", lambda: next(answers), 3) == "d"  # of another server


def test_answers_of_older_events_are_dropped() -> None:
    """Of one event there are few, and of questions that follow none there is nothing to keep."""
    told = [1]
    shared: Shared[int] = Shared(lambda: told[0])
    for number in range(5):
        shared.get(f"jobs/{number}", lambda: 1, 1)
    told[0] = 2
    shared.get("now", lambda: 2, 2)
    assert list(shared._kept) == ["now"]
    for number in range(2 * MOST_KEPT):
        shared.get(f"jobs/{number}", lambda: 1)
    assert list(shared._kept) == ["now"]
    for number in range(2 * MOST_KEPT):
        shared.get(f"jobs/{number}", lambda: 1, 2)
    assert len(shared._kept) <= MOST_KEPT


def test_two_events_come_at_once_and_then_four_a_second() -> None:
    pace, now = Pace(100.0, 5.0), 200.0
    pauses = []
    for at, used in ((now, 6.0), (now, 6.1), (now + 0.25, 6.2), (now + 60, 7.0)):
        pace.told(1, at, used)
        pauses.append(pace.next_at - at)
        assert pace.flood_until <= at, "few changes wait for nothing that was paid"
    assert pauses == [0, 0.25, 0.25, 0]


def test_in_a_flood_events_wait_until_the_last_one_is_paid_for() -> None:
    """The CPU time since the event before sets the pause, up to a limit."""
    pace, now = Pace(100.0, 5.0), 200.0
    pace.told(1, now, 5.0)
    pace.told(int(FLOOD), now + 0.5, 5.01)
    assert pace.flood_until == pytest.approx(now + 0.5 + 0.01 / MOST_SHARE)
    pace.told(int(FLOOD * 10), now + 2, 6.0)
    assert pace.flood_until == now + 2 + MOST_PAUSE_S


def test_a_tick_follows_when_the_last_event_is_paid_for() -> None:
    pace = Pace(100.0, 5.0)
    pace.ticked(110.0, 5.001)
    assert pace.tick_at == 110.0 + TICK_S
    pace.ticked(120.0, 5.001 + MOST_SHARE * (TICK_S + 0.5))
    assert pace.tick_at == pytest.approx(120.0 + TICK_S + 0.5)
