"""Orders that wait in the witness: each begins after the one before it, or is dropped, and never both.

A witness that the machine lets wait for 100 ms drops what it has: where a test is about what is not dropped, it tries
again.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from witness_driver import Line, Slot, frame, sh, until

FIRST_LOOK = 20  # trials


def put(key: str, out: Path, script: str = "") -> bytes:
    return frame("Q", f"k{key}", "d/tmp", f"o{out}", "A", *sh(script or f"echo {key}"))


def first(key: str, script: str) -> bytes:
    return frame("R", f"k{key}", "d/tmp", *sh(script))


def lines_until(slot: Slot, *keys: str) -> Iterator[Line]:
    """Ends, drops and errors, until all these keys have had one."""
    missing = set(keys)
    while missing:
        line = slot.next_line()
        if line["ev"] in ("end", "dropped", "error"):
            missing.discard(str(line.get("key")))
            yield line


def begun(slot: Slot) -> list[str]:
    return [str(line["key"]) for line in slot.lines() if line["ev"] == "begin"]


def test_they_run_one_after_the_other(slot: Slot, tmp_path: Path) -> None:
    """In the order in which they came, each with a record of its own."""
    for trial in range(FIRST_LOOK):
        out = tmp_path / f"out{trial}"
        keys = [f"{trial}.{number}" for number in range(5)]
        before = len(begun(slot))
        slot.send_raw(b"".join([first(f"{trial}.first", "true"), *(put(key, out) for key in keys)]))
        said = list(lines_until(slot, f"{trial}.first", *keys))
        ran = [line["key"] for line in said if line["ev"] == "end"]
        assert begun(slot)[before:] == ran
        assert sorted(line["key"] for line in said) == sorted([f"{trial}.first", *keys])
        if len(ran) == 6:
            break
    assert ran == [f"{trial}.first", *keys]
    assert [line["raw"] for line in said] == [0] * 6
    assert out.read_text().split() == keys


def test_one_that_comes_to_an_idle_witness_begins_at_once(slot: Slot, tmp_path: Path) -> None:
    slot.send_raw(put("only", tmp_path / "out", "exit 3"))
    assert [line["raw"] for line in lines_until(slot, "only")] == [3 << 8]


def test_behind_a_long_job_they_are_dropped(slot: Slot, tmp_path: Path) -> None:
    """Those that wait when it has run for long, and one that comes after that."""
    long = first("long", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    slot.send_raw(b"".join([long, put("a", tmp_path / "out"), put("b", tmp_path / "out")]))
    assert {(line["ev"], line["key"]) for line in lines_until(slot, "a", "b")} == {("dropped", "a"), ("dropped", "b")}
    slot.send_raw(put("c", tmp_path / "out"))
    assert [line["ev"] for line in lines_until(slot, "c")] == ["dropped"]
    (tmp_path / "go").touch()
    assert [line["ev"] for line in lines_until(slot, "long")] == ["end"]
    assert begun(slot) == ["long"]
    assert not (tmp_path / "out").exists()


def test_behind_several_that_take_long_together_they_are_dropped(slot: Slot, tmp_path: Path) -> None:
    """None of these is long, but who waits for all of them could have begun elsewhere long before."""
    keys = [f"n{number}" for number in range(10)]
    slot.send_raw(b"".join([first("first", "sleep 0.04"), *(put(key, tmp_path / "out", "sleep 0.04") for key in keys)]))
    said = list(lines_until(slot, "first", *keys))
    ran = [line["key"] for line in said if line["ev"] == "end"]
    assert ran == ["first", *keys[: len(ran) - 1]]
    assert len(ran) < 5
    assert [line["key"] for line in said if line["ev"] == "dropped"] == keys[len(ran) - 1 :]
    assert begun(slot) == ran


def test_more_than_fit_are_dropped(slot: Slot, tmp_path: Path) -> None:
    keys = [f"n{number}" for number in range(80)]
    long = first("long", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    slot.send_raw(b"".join([long, *(put(key, tmp_path / "out") for key in keys)]))
    assert sorted(str(line["key"]) for line in lines_until(slot, *keys)) == sorted(keys)
    (tmp_path / "go").touch()


def test_what_is_asked_of_one_that_waits_drops_it(slot: Slot, tmp_path: Path) -> None:
    """A cancellation is answered with what is true: it has not begun, or it is ended."""
    long = first("long", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    for verb in ("C", "T", "S", "P"):
        slot.send_raw(b"".join([long, put("a", tmp_path / "out"), frame(verb, "ka", *(["t9"] if verb == "T" else []))]))
        assert [line["ev"] for line in lines_until(slot, "a")] == ["dropped"]
        (tmp_path / "go").touch()
        assert [line["ev"] for line in lines_until(slot, "long") if line["ev"] == "end"] == ["end"]
        (tmp_path / "go").unlink()
    assert not (tmp_path / "out").exists()


def test_a_cancellation_of_one_that_has_begun_ends_it(slot: Slot, tmp_path: Path) -> None:
    slot.send_raw(put("next", tmp_path / "out", "echo began; exec sleep 60"))
    until(lambda: (tmp_path / "out").exists())
    slot.send("C", "knext")
    assert [line["raw"] for line in lines_until(slot, "next")] == [signal.SIGTERM]


def test_a_witness_stays_on_the_cpus_of_short_jobs(slot: Slot, tmp_path: Path) -> None:
    """While orders wait, the witness has the CPUs of its jobs; beside a longer job it may run anywhere."""
    everywhere = os.sched_getaffinity(0)
    if len(everywhere) < 2:
        pytest.skip("one CPU only")
    cpu = max(everywhere)
    out = tmp_path / "out"
    script = "grep -o 'Cpus_allowed_list:.*' /proc/$PPID/status /proc/self/status"
    for trial in range(FIRST_LOOK):
        out.unlink(missing_ok=True)
        keys = [f"{trial}.{number}" for number in range(3)]
        orders = [frame("Q", f"k{key}", "d/tmp", f"o{out}", "A", f"B{cpu}", *sh(script)) for key in keys]
        slot.send_raw(b"".join([frame("R", f"k{trial}", "d/tmp", f"B{cpu}", *sh("true")), *orders]))
        ran = [line for line in lines_until(slot, str(trial), *keys) if line["ev"] == "end"]
        own = re.findall(r"self/status:.*?([0-9,-]+)$", out.read_text(), re.MULTILINE) if out.exists() else []
        witness = re.findall(r"[0-9]/status:.*?([0-9,-]+)$", out.read_text(), re.MULTILINE) if out.exists() else []
        assert own == [str(cpu)] * (len(ran) - 1)
        if str(cpu) in witness:
            break
    else:
        pytest.fail(f"it never stayed near: {witness}")
    slot.send_raw(frame("R", "klong", "d/tmp", f"B{cpu}", *sh(f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")))
    until(lambda: os.sched_getaffinity(slot.process.pid) == everywhere)
    (tmp_path / "go").touch()
    assert [line["ev"] for line in lines_until(slot, "long")] == ["end"]


def test_suspending_the_job_before_them_drops_them(slot: Slot, tmp_path: Path) -> None:
    long = first("long", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    slot.send_raw(b"".join([long, put("next", tmp_path / "out"), frame("P", "klong")]))
    assert [line["ev"] for line in lines_until(slot, "next")] == ["dropped"]
    slot.send("U", "klong")
    (tmp_path / "go").touch()
    assert [line["ev"] for line in lines_until(slot, "long")] == ["end"]


def test_without_a_coordinator_nothing_more_begins(slot: Slot, tmp_path: Path) -> None:
    """Who comes back finds what has begun in the journal, and the rest never ran."""
    long = first("long", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    slot.send_raw(b"".join([long, put("a", tmp_path / "out"), put("b", tmp_path / "out")]))
    until(lambda: begun(slot))
    slot.disconnect()
    (tmp_path / "go").touch()
    until(lambda: slot.process.poll() is not None)
    assert begun(slot) == ["long"]
    assert not (tmp_path / "out").exists()


def test_one_that_can_not_be_started_does_not_stop_the_next(slot: Slot, tmp_path: Path) -> None:
    """A launch failure is its end; a field that nobody knows is an error line, and it never began."""
    for trial in range(FIRST_LOOK):
        bad, odd = frame("Q", f"kbad{trial}", "d/nowhere/at/all", *sh("true")), frame("Q", "kodd", "?", "a/bin/true")
        last = put(f"last{trial}", tmp_path / "out")
        slot.send_raw(b"".join([first(f"first{trial}", "true"), bad, odd, last]))
        said = [line["ev"] for line in lines_until(slot, f"last{trial}")]
        if "dropped" not in said:
            break
    assert said == ["end", "end", "error", "end"]
