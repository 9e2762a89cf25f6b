"""The real product as a process: what a user types, and what comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stored_past import Answer

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Product:
    """`aver` in a folder of its own."""

    folder: Path

    def __call__(self, *args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] = {}) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "aver", *args],
            cwd=self.folder,
            env={**os.environ, **env},
            input=stdin,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        out, err = (stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr))
        return Answer(done.returncode, out, err)

    def start(self, *args: str, **env: str) -> subprocess.Popen[bytes]:
        """Start and do not wait; in a process group of its own, as a shell does."""
        return self.start_to(subprocess.PIPE, *args, **env)

    def start_to(self, err: int | IO[bytes], *args: str, **env: str) -> subprocess.Popen[bytes]:
        """The same, with stderr to a file."""
        return subprocess.Popen(
            [sys.executable, "-m", "aver", *args],
            cwd=self.folder,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            process_group=0,
        )

    def state(self, number: int) -> str:
        return str(self("show", str(number), "--json").document["job"]["state"])

    def submit(self, *args: str) -> int:
        answer = self("submit", *args)
        assert answer.status == 0, answer.err
        return int(answer.out)


def end(process: subprocess.Popen[bytes], *numbers: signal.Signals) -> Answer:
    """Send signals to the process and wait for its end."""
    for number in numbers:
        process.send_signal(number)
    out, err = process.communicate(timeout=DEADLINE_S)
    return Answer(process.returncode, out.decode(), (err or b"").decode())


def wait_for_file(path: Path, text: str = "") -> None:
    """Wait until the file is there and has the text in it."""
    deadline = time.monotonic() + DEADLINE_S
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{path}: {path.read_text() if path.exists() else 'is not there'}"
        time.sleep(0.01)


def run_aver(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`aver` in this folder, with these variables besides ours."""
    return subprocess.run(
        [sys.executable, "-m", "aver", *args],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
