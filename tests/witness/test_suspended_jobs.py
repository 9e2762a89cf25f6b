"""A job that is suspended stands still: all of it, and for as long as it is suspended."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from witness_driver import Slot, is_running, sh, state_of, until

SETTLED_S = 3.0
CHAIN = """
import os
out = os.open("links", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.write(out, b".")
"""
SPAWN = """
import os
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "fifo", os.O_RDONLY, 0)])
open("went-on", "w")
"""


def start_python(slot: Slot, folder: Path, text: str) -> int:
    """A job whose shell waits for a program that leaves it; the pid of the shell."""
    (folder / "program.py").write_text(text)
    script = f"{sys.executable} program.py; touch begun; while :; do sleep 60; done"
    pid = slot.start("held", f"d{folder}", f"EPATH={os.environ['PATH']}", *sh(script))["pid"]
    assert isinstance(pid, int)
    return pid


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def grows(path: Path, for_s: float) -> bool:
    size = path.stat().st_size
    time.sleep(for_s)
    return path.stat().st_size > size


@pytest.mark.parametrize("chains", [1, 3])
def test_processes_that_fork_while_they_are_stopped_are_stopped(slot: Slot, tmp_path: Path, chains: int) -> None:
    """Each link of a chain forks the next one, in a session of its own, and ends: none of them outruns the witness."""
    links = tmp_path / "links"
    (tmp_path / "program.py").write_text(CHAIN)
    script = f"for _ in $(seq {chains}); do {sys.executable} program.py & done; wait; while :; do sleep 60; done"
    slot.start("held", f"d{tmp_path}", f"EPATH={os.environ['PATH']}", *sh(script))
    until(lambda: links.exists() and links.stat().st_size > 1000)
    for _ in range(5):
        slot.send("P", "kheld")
        until(lambda: not grows(links, 0.3), SETTLED_S)
        assert not grows(links, 0.5)
        slot.send("U", "kheld")
        until(lambda: grows(links, 0.05))
    slot.send("C", "kheld", "s9")
    assert slot.expect("end")["suspended"] > 0.8


def test_it_is_said_when_all_of_it_stands_still(slot: Slot) -> None:
    """Not when it is asked for: no process runs by then. Who asks again is told again, and so of what goes on."""
    script = "setsid sleep 60 & while :; do sleep 0.01; done"
    pid = slot.start("held", f"EPATH={os.environ['PATH']}", *sh(script))["pid"]
    for _ in range(5):
        slot.send("P", "kheld")
        slot.expect("suspended")
        assert all(state_of(one) in "TDZ" for one in (pid, *children_of(pid)))
        slot.send("P", "kheld")
        assert slot.expect("suspended")["key"] == "held"
        slot.send("U", "kheld")
        slot.expect("resumed")
        until(lambda: state_of(pid) in "SR")
        slot.send("U", "kheld")
        assert slot.expect("resumed")["at"] > 0
    slot.send("C", "kheld", "s9")
    slot.expect("end")


def test_nothing_is_said_of_a_job_that_is_being_ended(slot: Slot, tmp_path: Path) -> None:
    """It is not stopped, since it could not end then."""
    script = f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
    slot.start("held", "K1000", f"EPATH={os.environ['PATH']}", *sh(script))
    until((tmp_path / "ready").exists)
    slot.send("C", "kheld")
    slot.send("P", "kheld")
    assert slot.next_line()["ev"] == "end"


@pytest.mark.parametrize("chains", [1, 3])
def test_a_chain_of_forks_is_not_said_to_stand_still_while_it_runs(slot: Slot, tmp_path: Path, chains: int) -> None:
    """What the witness says is so: the file does not grow after it."""
    links = tmp_path / "links"
    (tmp_path / "program.py").write_text(CHAIN)
    script = f"for _ in $(seq {chains}); do {sys.executable} program.py & done; wait; while :; do sleep 60; done"
    slot.start("held", f"d{tmp_path}", f"EPATH={os.environ['PATH']}", *sh(script))
    until(lambda: links.exists() and links.stat().st_size > 1000)
    for _ in range(10):
        slot.send("P", "kheld")
        slot.expect("suspended")
        assert not grows(links, 0.1)
        slot.send("U", "kheld")
        slot.expect("resumed")
        until(lambda: grows(links, 0.05))
    slot.send("C", "kheld", "s9")
    slot.expect("end")


def test_who_is_continued_by_somebody_else_is_stopped_again(slot: Slot) -> None:
    """A suspended job is not made to run by a CONT that does not come from its witness."""
    pid = slot.start("held", *sh("while :; do sleep 0.01; done"))["pid"]
    slot.send("P", "kheld")
    until(lambda: state_of(pid) == "T")
    os.kill(pid, signal.SIGCONT)
    time.sleep(SETTLED_S)
    assert all(state_of(one) in "TD" for one in (pid, *children_of(pid)))
    slot.send("U", "kheld")
    until(lambda: state_of(pid) == "S")
    slot.send("C", "kheld", "s9")
    assert SETTLED_S <= slot.expect("end")["suspended"] < SETTLED_S + 2


def test_a_parent_that_waits_in_vfork_stands_still_with_its_child(slot: Slot, tmp_path: Path) -> None:
    """Its child is stopped before its exec. The parent has no state T, since it is not woken; it does nothing either,
    and goes on with its child."""
    os.mkfifo(tmp_path / "fifo")
    shell = start_python(slot, tmp_path, SPAWN)
    (parent,) = until(lambda: children_of(shell))
    (child,) = until(lambda: children_of(parent))
    assert state_of(parent) == "D"
    slot.send("P", "kheld")
    until(lambda: state_of(child) == "T")
    time.sleep(0.3)
    assert (state_of(shell), state_of(parent), state_of(child)) == ("T", "D", "T")
    slot.send("U", "kheld")
    fd = until(lambda: _open_for_writing(tmp_path / "fifo"))
    until((tmp_path / "went-on").exists)
    until((tmp_path / "begun").exists)
    os.close(fd)
    assert not is_running(parent)
    slot.send("C", "kheld", "s9")
    slot.expect("end")


def _open_for_writing(fifo: Path) -> int | None:
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # nobody reads it yet
        return None
