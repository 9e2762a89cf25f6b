"""Nothing that a job, a file or a name says reaches the terminal as a control character."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aver.cli.output.text import BAD, COLOURS

TITLE, CLEAR, C1 = b"\x1b]0;owned\x07", b"\x1b[2J", b"\x9b31m"
HOSTILE = b"n" + TITLE + CLEAR + C1 + "\x85\u202e".encode()
OURS = re.compile(
    rb"\x1b\[(?:[0-9;]*m|[0-9]*A|K|J|\?25[hl])"  # colours, and the moves of a table that is drawn again
)
DEADLINE_S = 60


def on_terminal(folder: bytes, *words: bytes) -> bytes:
    """What `aver` writes to a terminal of 80 columns."""
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [sys.executable.encode(), b"-m", b"aver", *words], cwd=folder, env=env, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    said = bytearray()
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the last one who wrote to it has gone
            break
        if not data:
            break
        said += data
    os.close(master)
    process.wait(timeout=DEADLINE_S)
    return bytes(said)


def raw_controls(said: bytes) -> list[str]:
    """The control characters that are not ours."""
    text = OURS.sub(b"", said).replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")
    return [ascii(letter) for letter in text if not letter.isprintable() and letter not in "\n\t\r"]


@pytest.fixture
def past(aver_home: Path, tmp_path: Path) -> bytes:
    """A folder with a hostile name in which three hostile jobs have failed: run 1, and the flow of runs 2 and 3."""
    folder = os.fsencode(tmp_path) + b"/" + HOSTILE
    os.mkdir(folder)
    script = b"#!/bin/sh\n#SBATCH -J b\nprintf 'Traceback: " + b"\\033]0;owned\\007\\233" + b"31m'>&2\nexit 3\n"
    with open(folder + b"/job.sh", "wb") as file:
        file.write(script)
    os.chmod(folder + b"/job.sh", 0o755)
    with open(folder + b"/flow.yaml", "wb") as file:
        file.write(
            b'jobs:\n  a: {run: "./job.sh"}\n  b: {needs: [a], run: "true"}\n'
            b'  c: {run: ["./no\\e[2Jsuch"]}\n  d: {run: "exit 2", output: "x\\e]0;owned\\a.log"}\n'
        )
    on_terminal(folder, b"run", b"./" + b"no" + TITLE)
    on_terminal(folder, b"run", b"--", b"/bin/sh", b"-c", b"exit 3 # " + HOSTILE)
    on_terminal(folder, b"run", b"--name", b"x", b"job.sh")
    return folder


COMMANDS = (
    b"run flow.yaml",
    b"run -- ./no\x1b[2Jsuch",
    b"check flow.yaml",
    b"jobs",
    b"runs",
    b"status",
    b"show 1",
    b"show 2",
    b"why 1",
    b"why 2",
    b"results 1",
    b"usage 1",
    b"show n\x1b]0;owned\x07\x9b31m",
    b"why \xc2\x85\x9b31m",
    b"log 2/\x9b31m",
    b"check \x1b[2J\x9b.yaml",
    b"nosuch\x1b[2J\x9b",
    b"run --time \x1b[2J\x9b -- true",
    b"cancel \x1b[2J\x9b",
    b"graph 1",
)


def test_no_control_character_reaches_the_terminal(past: bytes) -> None:
    said = {command: on_terminal(past, *command.split(b" ")) for command in COMMANDS}
    assert [command for command, text in said.items() if not text.strip()] == []
    assert {command: raw_controls(text) for command, text in said.items() if raw_controls(text)} == {}


def test_a_states_colour_is_all_that_lines_may_hold() -> None:
    """The expression above is of this module: these are the colours that there are."""
    assert all(OURS.fullmatch(f"\x1b[{code}m".encode()) for code in {*COLOURS.values(), BAD, "0"})
