"""A folder, a home and the real product: write a flow, run it on this machine, look at every surface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aver

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Lab:
    folder: Path
    home: Path
    kill: Callable[[], None]  # SIGKILL to the coordinator

    def write(self, text: str, name: str = "flow.yaml") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def submit(self, text: str) -> aver.Run:
        return aver.Flow.from_file(self.write(text), folder=self.folder).submit()

    def run(self, text: str) -> aver.Run:
        """Run the flow until all of it is settled."""
        run = self.submit(text)
        run.wait(DEADLINE_S)
        return run

    def __call__(self, *args: str, env: Mapping[str, str] = {}, stdin: str = "") -> Answer:
        """What a user types, and what comes from a pipe."""
        done = subprocess.run(
            [sys.executable, "-m", "aver", *args],
            cwd=self.folder,
            env={**os.environ, **env},
            input=stdin.encode(),
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def lines(self, name: str) -> list[str]:
        """The lines of a file that jobs wrote; none if it is not there."""
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    def wait_for(self, name: str) -> None:
        """Wait until a job has made this file."""
        self.until(lambda: (self.folder / name).exists(), f"{name} is not there")

    def until(self, predicate: Callable[[], object], otherwise: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while not predicate():
            assert time.monotonic() < end, otherwise
            time.sleep(0.01)

    def let_go(self, name: str) -> None:
        """Make the file that a job waits for."""
        (self.folder / name).touch()


def states(run: aver.Run) -> dict[str, str]:
    return {job.name: str(job.state) for job in run}


def reasons(run: aver.Run) -> dict[str, str]:
    return {job.name: job.reason for job in run}


def wait_for_file(name: str) -> str:
    """A shell's text that goes on when the file is there."""
    return f"until test -e {name}; do sleep 0.02; done"
