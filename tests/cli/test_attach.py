"""`aver attach` and `--pty`: a job with a terminal, which one can come back to."""

from __future__ import annotations

import os
from pathlib import Path

from drawn_terminal import Terminal
from product import Product

ECHO = "import sys; print('tty', sys.stdin.isatty()); print('got', input('name? ')); sys.exit(int(input('exit? ')))"
DETACH = b"\x1c"


def submit(aver: Product, *command: str) -> int:
    return aver.submit("-q", "--pty", "--", *command)


def test_one_can_detach_and_come_back(aver: Product) -> None:
    """The job goes on meanwhile; who comes back sees what was drawn, and exits as the job does."""
    job = submit(aver, "python3", "-c", ECHO)
    first = Terminal(aver, ["attach", str(job)], 80, 24)
    first.read_until(b"name? ")
    first.press(b"ann\r")
    first.read_until(b"exit? ")
    first.press(DETACH)
    assert f"detached; job {job} goes on" in first.read_until(None)
    assert first.close() == 0
    second = Terminal(aver, ["attach", str(job)], 80, 24)
    assert "got ann" in second.read_until(b"exit? ")
    second.press(b"3\r")
    assert f"job {job} FAILED" in second.read_until(None)
    assert second.close() == 1
    log = aver("log", str(job)).out
    assert "tty True" in log
    assert aver("show", str(job), "--json").document["job"]["exit"]["text"] == "3:0"
    assert not list((Path(os.environ["AVER_HOME"]) / "terminals").iterdir())


def test_run_with_a_terminal_is_attached(aver: Product) -> None:
    """Ctrl-C goes to the job's program, whose end by a signal is the job's."""
    terminal = Terminal(aver, ["run", "--pty", "--", "sh", "-c", "stty size; echo up; exec sleep 600"], 91, 33)
    terminal.read_until(b"up")
    terminal.press(b"\x03")
    text = terminal.read_until(None)
    assert "RaisedSignal:2" in text
    assert terminal.close() == 1


def test_a_cancelled_job_with_a_terminal_is_cancelled(aver: Product) -> None:
    """TERM reaches the program, which may end by itself."""
    job = submit(aver, "sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    terminal = Terminal(aver, ["attach", str(job)], 80, 24)
    terminal.read_until(b"up")
    aver("cancel", str(job))
    assert f"job {job} CANCELLED" in terminal.read_until(None)
    assert terminal.close() == 5
    assert "bye" in aver("log", str(job)).out


def test_what_can_not_be_attached_to_says_why(aver: Product) -> None:
    """A job that has ended, one without a terminal, a flow, and a pipe in place of our terminal."""
    done = aver.submit("-q", "--", "true")
    aver("watch", "-q", str(done))
    refused = aver("attach", str(done))
    assert (refused.status, refused.err) == (
        2,
        f"aver: job {done} is COMPLETED; `aver log {done}` shows its output\n",
    )
    job = submit(aver, "sleep", "600")
    assert "attach needs a terminal" in aver("attach", str(job)).err
    aver("cancel", "--force", str(job))
    plain = aver.submit("-q", "--", "sleep", "600")
    terminal = Terminal(aver, ["attach", str(plain)], 80, 24)
    assert f"job {plain} has no terminal" in terminal.read_until(None)
    assert terminal.close() == 2
    aver("cancel", "--force", str(plain))
    (aver.folder / "flow.yaml").write_text("jobs: {a: {run: 'true'}}\n")
    assert "--pty is for a command" in aver("submit", "--pty", "flow.yaml").err
