"""`aver top`: the board as text, and the program in a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from product import Product, wait_for_file
from stored_past import Aver

from aver.cli.output.table import cell_count
from aver.cli.session import Session
from aver.cli.top.board import Act, Board, Quit, Show
from aver.cli.top.feed import Feed, Item, Snapshot
from aver.model.record import replace
from aver.model.states import State

DEADLINE_S = 60.0


def item(job: int, name: str = "train", state: State = State.RUNNING, note: str = "") -> Item:
    return Item(job, job, name, state, "2 min", "1.9/2", "1.2 GiB/2 GiB", note)


def board(*items: Item) -> Board:
    made = Board()
    made.take(Snapshot((("running", 2), ("waiting", 100_000), ("failed", 1)), items, 99_000, 0.0))
    return made


def test_every_line_fits_80_by_24() -> None:
    """Whatever the names are, with thousands of jobs."""
    made = board(
        *(item(number, "a" * 200 if number % 2 else "漢字" * 40, note="waiting " * 20) for number in range(900))
    )
    for width, height in ((79, 24), (40, 10), (199, 50)):
        lines = made.lines(width, height)
        assert len(lines) == height
        assert all(cell_count(line.text) <= width for line in lines)
    assert made.lines(79, 24)[0].text == "aver: 2 running, 100000 waiting, 1 failed"


def test_running_jobs_show_what_they_use_beside_what_they_asked_for() -> None:
    """CPUs and memory."""
    (line,) = [line for line in board(item(7)).lines(79, 24) if line.style == "chosen"]
    assert line.text.split() == ["7", "train", "RUNNING", "2", "min", "1.9/2", "1.2", "GiB/2", "GiB"]


def test_columns_stay_in_their_places_at_80_columns() -> None:
    """Long names and notes are shortened, each by itself."""
    waits = item(8, "train[sample=abc,seed=17]", State.PENDING, "waiting for 4 CPUs: jobs 18, 19 and 3 more have them")
    lines = board(item(7, "train[sample=abc,seed=16]"), replace(waits, time="", cpu="", mem="")).lines(79, 24)[1:4]
    assert [line.text for line in lines] == [
        "JOB     NAME               STATE          TIME        CPU     MEMORY",
        "7       train[sa…seed=16]  RUNNING        2 min       1.9/2   1.2 GiB/2 GiB",
        "8       train[sa…seed=17]  PENDING                    waiting for 4 CPUs: jobs…",
    ]


def test_keys_choose_a_job_and_it_stays_chosen() -> None:
    """Where others come and go, and on a list that is longer than the screen."""
    made = board(*map(item, range(100)))
    made.lines(79, 24)
    for key in ("down", "j", "page down"):
        made.press(key)
    assert made.chosen == 23
    assert any(line.style == "chosen" for line in made.lines(79, 24))
    made.take(Snapshot((), tuple(map(item, range(20, 60))), 0, 0.0))
    assert made.chosen == 23
    made.press("end")
    assert made.chosen == 59
    assert any(line.style == "chosen" for line in made.lines(79, 24))


def test_keys_ask_for_commands() -> None:
    """What can't be undone is asked first."""
    made = board(item(7), replace(item(8, state=State.PENDING), is_held=True))
    assert made.press("l") == Show("log", 7)
    assert made.press("q") is None
    assert made.press("w") == Show("why", 7)
    made.press("q")
    assert made.press("s") == Show("show", 7)
    made.press("escape")
    assert made.press("c") is None
    assert "cancel job 7?" in made.lines(79, 24)[-1].text
    assert made.press("n") is None
    assert made.press("c") is None
    assert made.press("y") == Act("cancel", 7)
    assert made.press("h") == Act("hold", 7)
    made.press("down")
    assert made.press("h") == Act("release", 8)
    assert made.press("q") == Quit()


def test_every_held_job_is_released_by_its_key(aver: Product) -> None:
    """However many there are: only some are explained in words."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {matrix: {n: 1..6}, run: 'echo {n}', hold: true}\n")
    run = aver.submit("flow.yaml")
    found = Feed(Session()).read("all", "").items
    assert [board(one).press("h") for one in found] == [Act("release", one.job) for one in found]
    assert len(found) == 6
    assert aver("cancel", str(run)).status == 0


def test_a_search_and_a_view_are_chosen() -> None:
    """And taken back with escape."""
    made = board(item(7))
    for key in ("/", "t", "x", "backspace", "r", "enter", "f"):
        made.press(key)
    assert (made.name, made.view) == ("tr", "running")
    assert "showing: running   name: tr" in made.lines(79, 24)[0].text
    made.press("escape")
    assert (made.name, made.view) == ("", "all")


class Terminal:
    """`aver top` on a pseudo-terminal of 80 by 24."""

    def __init__(self, folder: Path) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aver", "top"], cwd=folder, stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""}, process_group=0,
        )  # fmt: skip

    def wait(self, text: str) -> None:
        """Until the screen has had this text since the last wait."""
        end = time.monotonic() + DEADLINE_S
        while text.encode() not in self.seen:
            assert time.monotonic() < end, self.seen[-4000:]
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        self.seen = self.seen.rpartition(text.encode())[2]

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self) -> int:
        """Its exit status; all that it wrote is read meanwhile."""
        end = time.monotonic() + DEADLINE_S
        while (status := self.process.poll()) is None:
            assert time.monotonic() < end
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)
        return status

    @property
    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.slave) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


LEAVES = "\x1b[?1049l"  # the screen from before is shown again


@pytest.fixture
def terminal(aver: Product) -> Iterator[Terminal]:
    number = aver.submit("--name", "sleeper", "--", "sh", "-c", "echo said; touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    aver("run", "--name", "broken", "--", "false")
    made = Terminal(aver.folder)
    yield made
    made.close()
    aver("cancel", str(number), "--force")


def test_it_shows_jobs_and_keys_act(terminal: Terminal, aver: Product) -> None:
    """The log and the explanation of a job, and its cancellation."""
    terminal.wait("1 running, 0 waiting, 1 failed")
    terminal.wait("sleeper")
    terminal.type("l")
    terminal.wait("said")
    terminal.type("q")
    terminal.wait("broken")
    terminal.type("jw")
    terminal.wait("Failed with exit code 1")
    terminal.type("qkcy")
    terminal.wait("CANCELLED")
    assert aver.state(1) == "CANCELLED"
    terminal.type("q")
    assert terminal.ended() == 0
    assert LEAVES.encode() in terminal.seen
    assert terminal.is_as_before


def test_a_signal_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    """SIGTERM: the exit status says so."""
    terminal.wait("sleeper")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.ended() == 128 + signal.SIGTERM
    assert LEAVES.encode() in terminal.seen
    assert terminal.is_as_before


def test_it_can_be_stopped_and_goes_on(terminal: Terminal) -> None:
    """Ctrl-Z gives the terminal back; fg draws all again."""
    terminal.wait("sleeper")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.wait(LEAVES)
    end = time.monotonic() + DEADLINE_S
    while not re.search(r"\) T ", Path(f"/proc/{terminal.process.pid}/stat").read_text()):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert terminal.is_as_before
    terminal.process.send_signal(signal.SIGCONT)
    terminal.wait("sleeper")
    terminal.type("q")
    assert terminal.ended() == 0
    assert terminal.is_as_before


def test_without_a_terminal_it_says_what_to_use(past: Path, call: Aver) -> None:
    """In a pipe there are other commands."""
    answer = call("top")
    assert (answer.status, "aver jobs" in answer.err) == (2, True)
