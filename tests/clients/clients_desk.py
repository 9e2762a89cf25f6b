"""Where a client is run: a folder and a home of its own, and `aver shell -- CLIENT` as a user types it.

A client is a program from PyPI in a virtual environment of its own (`scripts/clients`). Nothing of it is patched.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.home import Home
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow
from page_places import CLIENTS

PROGRAMS = Path(__file__).resolve().parent / "programs"
DEADLINE_S = 240.0
LEFT_OUT = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SINFO_", "SNAKEMAKE_", "PARSL_", "DASK_", "AVER_", "PYTEST_")


@dataclass(frozen=True)
class Said:
    """How a client ended, and all that it printed."""

    status: int
    text: str

    @property
    def facts(self) -> dict[str, Any]:
        """The JSON document that a program of this folder prints last."""
        lines = self.text.strip().splitlines()
        assert lines, f"it said nothing, and ended with {self.status}"
        assert lines[-1].startswith("{"), self.text
        found: dict[str, Any] = json.loads(lines[-1])
        return found


@dataclass(frozen=True)
class Desk:
    """One folder, one home."""

    folder: Path
    home: Path

    def start(self, *command: str, env: Mapping[str, str] = {}) -> subprocess.Popen[str]:
        """`aver shell -- COMMAND`, in a group of its own, as a terminal would have it."""
        return subprocess.Popen(
            [sys.executable, "-m", "aver", "shell", "--", *command],
            cwd=self.folder,
            env={**self.environment, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )

    def finish(self, client: subprocess.Popen[str]) -> Said:
        """Wait for a client; one that hangs is killed, and its text is shown."""
        try:
            text, _ = client.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(client.pid, signal.SIGKILL)
            text, _ = client.communicate()
            raise AssertionError(f"{client.args} did not end within {DEADLINE_S:g} s:\n{text}") from None
        return Said(client.returncode, text)

    def run(self, *command: str, env: Mapping[str, str] = {}) -> Said:
        return self.finish(self.start(*command, env=env))

    def program(self, name: str, *arguments: str) -> dict[str, Any]:
        """What the client reported to one of the programs beside the tests."""
        said = self.run("python", os.fspath(PROGRAMS / name), *arguments)
        assert said.status == 0, said.text
        return said.facts

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
        return {
            **kept,
            "PATH": os.pathsep.join([os.fspath(CLIENTS / "bin"), kept.get("PATH", os.defpath)]),
            "HOME": os.fspath(self.folder),
            "XDG_CACHE_HOME": os.fspath(self.folder / "cache"),
            "AVER_HOME": os.fspath(self.home),
            "AVER_CONFIG": os.fspath(self.home / "settings.toml"),
        }

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def until_file(self, name: str, client: subprocess.Popen[str]) -> None:
        """Wait until the file is there; fail if the client ends without it."""
        end = time.monotonic() + DEADLINE_S
        while not (self.folder / name).exists():
            assert client.poll() is None, self.finish(client).text
            assert time.monotonic() < end, f"{name} never came"
            time.sleep(0.05)

    def until_settled(self) -> list[JobRow]:
        """Wait until every job is settled."""
        end = time.monotonic() + DEADLINE_S
        jobs = self.jobs()
        while not all(job.state.is_settled for job in jobs):
            assert time.monotonic() < end, f"last seen: {jobs}"
            time.sleep(0.05)
            jobs = self.jobs()
        return jobs

    def jobs(self) -> list[JobRow]:
        """What the store knows, to be compared with what the client reports."""
        reader = Reader.open(Home(self.home).database)
        assert reader is not None
        with reader:
            return sorted((job for run in reader.runs() for job in reader.jobs(run=run.id)), key=lambda job: job.id)
