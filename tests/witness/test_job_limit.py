"""The limit of a job with steps: its script's witness owns it and says when it is due and that it has passed.

A task's witness knows when its job's limit passes, and ends its task only if nobody else has.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from witness_driver import Slot, acts, sh, sig, state_of, until

TERM, KILL, USR1 = signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1
FAR_MS = 600_000


def now_ms() -> int:
    """The clock of due times: CLOCK_MONOTONIC."""
    return int(time.monotonic() * 1000)


def test_start_and_hello_say_when_the_limit_is_due(slot: Slot) -> None:
    """By the monotonic clock, so that others need no clock of their own to go by it; null without a limit."""
    before = time.monotonic()
    start = slot.start("due", f"t{FAR_MS}", "asleep", "a60")
    assert before + 600 <= start["due"] <= time.monotonic() + 600
    assert slot.connect()["due"] == start["due"]
    slot.send("C", "kdue")
    slot.expect("end")
    assert slot.start("none", "asleep", "a60")["due"] is None
    assert slot.connect()["due"] is None
    slot.send("C", "knone")
    slot.expect("end")


def test_a_limit_that_moves_is_said(slot: Slot) -> None:
    """A new limit moves it, a suspension makes it stand still, and afterwards it is later by that time."""
    start = slot.start("move", f"t{FAR_MS}", "asleep", "a60")
    slot.send("T", "kmove", f"t{2 * FAR_MS}")
    moved = slot.expect("due")["due"]
    assert round(moved - start["due"], 3) == 600
    slot.send("P", "kmove")
    assert slot.expect("due")["due"] is None
    assert slot.connect()["due"] is None
    until(lambda: state_of(start["pid"]) == "T")
    slot.send("U", "kmove")
    again = slot.expect("due")["due"]
    assert again > moved
    slot.send("T", "kmove", "t")
    assert slot.expect("due")["due"] is None
    slot.send("C", "kmove")
    assert slot.expect("end")["suspended"] >= again - moved - 0.001


def test_a_passed_limit_is_said_before_the_end_and_kept(slot: Slot) -> None:
    """A coordinator that is there hears of it first, one that comes later reads it in the journal."""
    slot.start("passed", "t50", "asleep", "a60")
    limit = slot.next_line()
    assert (limit["ev"], limit["key"]) == ("limit", "passed")
    end = slot.next_line()
    assert (end["ev"], acts(end)) == ("end", [("time", TERM)])
    assert [line["ev"] for line in slot.lines()] == ["begin", "start", "limit", "end"]


def test_a_job_that_ended_after_its_limit_passed_has_the_act(slot: Slot, tmp_path: Path) -> None:
    """A witness that comes too late to act says that the limit had passed: with signal 0, since it sent none."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    start = slot.start("late", "t300", f"d{tmp_path}", *sh("read <fifo; exit 0"))
    os.kill(slot.process.pid, signal.SIGSTOP)
    until(lambda: state_of(slot.process.pid) == "T")
    until(lambda: time.monotonic() > start["due"])
    fifo.write_text("go\n")
    until(lambda: state_of(start["pid"]) == "Z")
    os.kill(slot.process.pid, signal.SIGCONT)
    end = slot.expect("end")
    assert (end["raw"], acts(end)[0][0]) == (0, "time")
    assert end["elapsed"] >= 0.3


@pytest.mark.parametrize(
    ("how", "noted"),
    [("exit 5", []), ("kill -SEGV $$", []), ("kill -KILL $$", [("cancel", TERM)])],
)
@pytest.mark.parametrize("field", ["", "D"])
def test_a_cancel_that_came_after_the_end_ended_nothing(
    slot: Slot, tmp_path: Path, how: str, noted: list[tuple[str, int]], field: str
) -> None:
    """The job has ended by itself when its witness comes to act: it was not ended by that. Who was killed may have been
    so in the witness's place, by the coordinator."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    start = slot.start("late", f"d{tmp_path}", *sh(f"read <fifo; {how}"))
    os.kill(slot.process.pid, signal.SIGSTOP)
    until(lambda: state_of(slot.process.pid) == "T")
    fifo.write_text("go\n")
    until(lambda: state_of(start["pid"]) == "Z")
    slot.send("C", "klate", *([field] if field else []))
    os.kill(slot.process.pid, signal.SIGCONT)
    wanted = [("jobtime", TERM)] if field and noted else noted
    if not wanted:
        assert slot.expect("error")["text"] == "the job has ended"
    assert acts(slot.expect("end")) == wanted


def test_a_job_that_ended_before_its_limit_has_no_act(slot: Slot) -> None:
    """Nothing of a limit that did not pass."""
    assert slot.run("soon", f"t{FAR_MS}", "atrue")["acts"] == []


def test_a_task_is_ended_because_of_its_jobs_limit(slot: Slot) -> None:
    """A cancel that says so: TERM, and the act names the job's limit."""
    slot.start("task", f"D{now_ms() + FAR_MS}", "asleep", "a60")
    slot.send("C", "ktask", "D")
    end = slot.expect("end")
    assert (sig(end), acts(end)) == ((0, TERM), [("jobtime", TERM)])


def test_a_task_that_nobody_ends_ends_itself_after_its_jobs_limit(slot: Slot, tmp_path: Path) -> None:
    """With nobody connected as well; never before the limit; who ignores TERM is killed after the kill wait."""
    out = tmp_path / "out"
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    slot.start("task", f"D{now_ms() + FAR_MS}", "K50", f"o{out}", *sh(script))
    until(lambda: out.exists() and out.read_text() == "ready\n")
    due_ms = now_ms() + 20
    slot.send("T", "ktask", f"D{due_ms}")
    slot.disconnect()
    end = until(lambda: slot.lines()[-1] if slot.lines()[-1]["ev"] == "end" else None)
    assert acts(end) == [("jobtime", TERM), ("kill", KILL)]
    assert now_ms() > due_ms


def test_a_task_outlives_a_limit_that_was_moved_or_lifted(slot: Slot) -> None:
    """The job has a new limit: the task's witness goes by it."""
    slot.start("task", f"D{now_ms()}", "asleep", "a60")
    slot.send("T", "ktask", "D")
    slot.send("T", "ktask", "D12x")
    assert slot.expect("error")["text"] == "bad time limit"
    until(lambda: slot_age(slot) > 2.3)  # longer than the grace after the first one
    slot.send("C", "ktask")
    assert acts(slot.expect("end")) == [("cancel", TERM)]


def slot_age(slot: Slot) -> float:
    """Seconds since the slot's last begin line."""
    return time.time() - float(next(line for line in reversed(slot.lines()) if line["ev"] == "begin")["at"])


def test_a_tasks_own_limit_is_its_own(slot: Slot) -> None:
    """The earlier of the two counts: its own is the act `time`."""
    end = slot.run("own", "t50", f"D{now_ms() + FAR_MS}", "asleep", "a60")
    assert acts(end) == [("time", TERM)]


def test_the_warning_comes_before_the_jobs_limit(slot: Slot) -> None:
    """A task without a limit of its own is warned its lead before its job's."""
    end = slot.run("warn", f"D{now_ms() + FAR_MS}", f"w{USR1} {2 * FAR_MS} a", "asleep", "a60")
    assert (sig(end), acts(end)) == ((0, USR1), [("warn", USR1)])


def test_suspended_time_of_a_task_does_not_count(slot: Slot) -> None:
    """While its job is suspended the limit stands still, also for the task."""
    pid = slot.start("stop", f"D{now_ms() + 100}", "asleep", "a60")["pid"]
    slot.send("P", "kstop")
    until(lambda: state_of(pid) == "T")
    until(lambda: slot_age(slot) > 2.5)  # beyond limit and grace
    assert state_of(pid) == "T"
    slot.send("U", "kstop")
    end = slot.expect("end")
    assert acts(end) == [("jobtime", TERM)]
    assert end["elapsed"] - end["suspended"] >= 0.05
