"""The wait status of the child is kept whole."""

from __future__ import annotations

import os
import signal

import pytest
from witness_driver import Slot, acts, sh, sig

FATAL = [
    number
    for number in range(1, 65)
    if number not in (32, 33, signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
    and number not in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
]


def test_exit_codes(slot: Slot) -> None:
    """An exit code is the code, also from 128 on; one witness takes one job after the other."""
    for code in (0, 1, 2, 7, 126, 127, 128, 129, 137, 139, 200, 255):
        end = slot.sh(f"code-{code}", f"exit {code}")
        assert end["raw"] == code << 8
        assert end["launch"] is None


def test_every_fatal_signal(slot: Slot) -> None:
    """A death by signal is that signal, with the raw status that wait(2) gave."""
    for number in FATAL:
        slot.start(f"signal-{number}", "asleep", "a60", "l4 0 0")
        slot.send("S", f"ksignal-{number}", f"s{number}", "cb")
        end = slot.expect("end")
        assert sig(end) == (0, number)
        assert acts(end) == [("signal", number)]
        assert end["raw"] & 0xFF00 == 0


def test_exit_137_is_not_a_kill(slot: Slot) -> None:
    """`exit 137` and a death by SIGKILL are two things."""
    assert slot.sh("code", "exit 137")["raw"] == 137 << 8
    assert slot.sh("kill", "kill -KILL $$")["raw"] == signal.SIGKILL


def test_core_dump_flag(slot: Slot, tmp_path: os.PathLike[str]) -> None:
    """The core-dump flag is kept: the same one that a plain parent sees."""
    script = "ulimit -c unlimited 2>/dev/null; kill -SEGV $$"
    child = os.posix_spawn("/bin/bash", ["bash", "-c", f"cd {tmp_path}; {script}"], dict(os.environ))
    plain = os.waitpid(child, 0)[1]
    assert slot.sh("core", script, f"d{tmp_path}")["raw"] == plain
    if not os.WCOREDUMP(plain):
        pytest.skip("this machine writes no core files; the flag was compared as not set")


def test_end_line_has_every_word(slot: Slot) -> None:
    """The end line is complete, and the journal has the same line."""
    end = slot.sh("all", "exit 0")
    assert (
        list(end)
        == (
            "ev key witness pid boot raw start elapsed suspended user sys maxrss peak mem limit oom hostoom "
            "acts got left launch over size"
        ).split()
    )
    assert end["witness"] == slot.process.pid
    assert end["size"] == slot.journal.stat().st_size
    begin, _, kept = slot.lines()
    assert kept == end
    assert (begin["ev"], begin["key"], begin["boot"]) == ("begin", "all", end["boot"])
    assert end["maxrss"] > 100_000


def test_usage_is_that_of_all_processes(slot: Slot) -> None:
    """User and system time count processes that the child did not wait for."""
    burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    end = slot.sh("usage", f"(({burn}) & echo $! >pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done",
                  f"d{slot.folder}")  # fmt: skip
    assert end["user"] + end["sys"] > 0.03
    assert end["left"] == 0


def test_a_pair_of_jobs_is_kept_apart(slot: Slot) -> None:
    """What one job did or used is not in the next one's record."""
    slot.start("first", *sh("sleep 60"))
    slot.send("C", "kfirst")
    assert slot.expect("end")["acts"] != []
    end = slot.sh("second", "exit 0")
    assert (end["acts"], end["got"], end["left"], end["user"] < 1) == ([], [], 0, True)
