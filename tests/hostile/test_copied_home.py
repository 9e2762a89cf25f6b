"""Two copies of one home, each with a live coordinator: neither ends, or counts, what the other runs."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.model.states import State
from live_home import LiveHome, is_alive, wait_for

WAIT = "echo $$ > pid-{0}.part; mv pid-{0}.part pid-{0}; while [ ! -e go-{0} ]; do sleep 0.05; done"


@pytest.fixture
def copy(live: LiveHome, tmp_path: Path) -> Iterator[LiveHome]:
    copy = LiveHome(tmp_path / "copy", live.folder)
    yield copy
    copy.end_everything()


def copy_home(live: LiveHome, copy: LiveHome) -> None:
    """`cp -a`, while no coordinator writes; sockets are made anew."""
    shutil.copytree(
        live.home.path, copy.home.path, symlinks=True, ignore=lambda _, names: [n for n in names if "sock" in n]
    )


def start(live: LiveHome, name: str) -> tuple[int, int]:
    """Start a job that waits; its number and its process."""
    number = live.run_text(WAIT.format(name))
    live.wait_running(number)
    path = live.folder / f"pid-{name}"
    return number, int(wait_for(lambda: path.read_text() if path.exists() else "", f"the pid of {name}"))


def end(live: LiveHome, number: int, name: str) -> State:
    (live.folder / f"go-{name}").touch()
    live.settle([number])
    return live.job(number).state


def test_a_copy_of_a_home_in_use_ends_nothing_of_it(live: LiveHome, copy: LiveHome) -> None:
    """The copy knows the job as running, finds no witness of it in its own folder, and leaves the job alone: its
    witness lives, and runs it for the first home."""
    number, pid = start(live, "first")
    live.kill_coordinator()
    copy_home(live, copy)
    copy.connect_again()
    copy.settle([number])
    assert copy.job(number).state is State.UNVERIFIED
    assert is_alive(pid)
    live.connect_again()
    assert end(live, number, "first") is State.COMPLETED


def test_witnesses_of_two_copies_have_cgroups_of_their_own(live: LiveHome, copy: LiveHome) -> None:
    """Both have a first slot. That the copy's witness is killed there ends the copy's job alone."""
    live.settle([live.run_text("true")])
    live.kill_coordinator(signal.SIGTERM)
    live.wait_until_gone()
    copy_home(live, copy)
    number, pid = start(live, "first")
    other, other_pid = start(copy, "second")
    groups = [Path(f"/proc/{one}/cgroup").read_text() for one in (pid, other_pid)]
    assert groups[0] != groups[1] or not live.cgroups()
    os.kill(copy.witness_of(other), signal.SIGKILL)
    copy.settle([other])
    assert copy.job(other).state is State.UNVERIFIED
    assert not is_alive(other_pid)
    assert is_alive(pid)
    assert end(live, number, "first") is State.COMPLETED
