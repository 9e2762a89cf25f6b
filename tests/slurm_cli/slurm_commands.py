"""Slurm's commands as processes: what a user types after `aver env`, and what comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aver.client.slurm_bin import install
from aver.home import Home
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.read.rows import AttemptRow, JobRow

DEADLINE_S = 60.0
PREFIXES = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_")


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Slurm:
    """The commands of one home, called in a folder of their own."""

    folder: Path
    home: Path

    def __call__(self, program: str, *args: str, stdin: str = "", env: Mapping[str, str] = {}) -> Said:
        return self._run([os.fspath(self.home / "bin" / program), *args], stdin, env)

    def shell(self, text: str, stdin: str = "", env: Mapping[str, str] = {}) -> Said:
        """What a user types into a shell that does not have the commands on its PATH."""
        return self._run(["/bin/bash", "-c", text], stdin, env)

    def _run(self, words: list[str], stdin: str, env: Mapping[str, str]) -> Said:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={**self.environment, **env},
            input=stdin.encode(),
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        out, err = (stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr))
        return Said(done.returncode, out, err)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
        return {**kept, "AVER_HOME": str(self.home)}

    def submit(self, *args: str, stdin: str = "") -> int:
        """sbatch --parsable; the number."""
        said = self("sbatch", "--parsable", *args, stdin=stdin)
        assert said.status == 0, said
        return int(said.out)

    def script(self, text: str, name: str = "job.sh") -> str:
        """Write a batch script into the folder; its name."""
        (self.folder / name).write_text(text)
        return name

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def kill_coordinator(self) -> None:
        """kill -9, and wait until it is gone."""
        pid = json.loads((self.home / "lock").read_bytes())["pid"]
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + DEADLINE_S
        while _has_files(pid):
            assert time.monotonic() < deadline, f"{pid} lives on"
            time.sleep(0.01)

    def job(self, number: int) -> JobRow:
        reader = Reader.open(Home(self.home).database)
        assert reader is not None
        with reader:
            row = reader.job(number)
        assert row is not None, f"there is no job {number}"
        return row

    def jobs(self, run: int) -> list[JobRow]:
        reader = Reader.open(Home(self.home).database)
        assert reader is not None
        with reader:
            return reader.jobs(run=run)

    def attempts(self, number: int) -> list[AttemptRow]:
        reader = Reader.open(Home(self.home).database)
        assert reader is not None
        with reader:
            return reader.attempts(number)

    def until(self, number: int, fits: Callable[[JobRow], bool]) -> JobRow:
        """Wait until the job is so; fail with how it was last."""
        deadline = time.monotonic() + DEADLINE_S
        while not fits(row := self.job(number)):
            assert time.monotonic() < deadline, f"last seen: {row}"
            time.sleep(0.01)
        return row

    def until_state(self, number: int, state: State) -> JobRow:
        return self.until(number, lambda row: row.state is state)

    def until_reason(self, number: int, reason: str) -> JobRow:
        return self.until(number, lambda row: row.reason == reason)

    def until_settled(self, number: int) -> JobRow:
        return self.until(number, lambda row: row.state.is_settled)

    def until_file(self, name: str, text: str = "") -> None:
        """Wait until the file is there and has the text in it."""
        path = self.folder / name
        deadline = time.monotonic() + DEADLINE_S
        while not (path.exists() and text in path.read_text()):
            assert time.monotonic() < deadline, f"{name}: {path.read_text() if path.exists() else 'is not there'}"
            time.sleep(0.01)


def _has_files(pid: int) -> bool:
    """Whether the process still holds files open. Those of a zombie, which has none, only root may list."""
    try:
        return bool(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def make_slurm(home: Path, folder: Path) -> Slurm:
    """The commands of this home; its folder is made."""
    folder.mkdir(exist_ok=True)
    Home(home).prepare()
    install(Home(home))
    return Slurm(folder, home)
