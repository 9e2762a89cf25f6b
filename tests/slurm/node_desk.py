"""A user's desk at the real Slurm: hands over batch scripts as Aver does, waits for their end, reads their records."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from aver.engines.slurm.submit.script import Member, batch_script
from aver.engines.slurm.submit.shim import install_shim
from node_witness import witness_at

Record = dict[str, Any]
DEADLINE_S = 90.0
UNSETTLED = {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED", "SUSPENDED"}


class Lab(Protocol):
    user: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Ended:
    """What slurmctld says of a job."""

    state: str
    exit: str
    derived: str


class Desk:
    """A folder of an ordinary user, with a witness, our srun and a place for records."""

    def __init__(self, lab: Lab, folder: Path, witness: Path) -> None:
        self.lab, self.folder = lab, folder
        self.records, self.witness = folder / "records", folder / "aver-witness"
        for path in (folder, self.records):
            path.mkdir()
        shutil.copy(witness, self.witness)
        self.shim = install_shim(folder / "bin", witness_at(self.witness), str(self.records)).parent
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, lab.user, lab.user)

    def call(self, *words: str, stdin: bytes = b"") -> str:
        """One of Slurm's commands as the user."""
        as_user = ["setpriv", "--reuid", self.lab.user, "--regid", self.lab.user, "--init-groups"]
        kept = {name: value for name, value in self.lab.environment.items() if not name.startswith("AVER")}
        done = subprocess.run(
            [*as_user, *words], input=stdin, capture_output=True, cwd=self.folder, env=kept, timeout=60, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.decode()

    @property
    def release(self) -> tuple[int, int]:
        """Of the lab's Slurm: (25, 11)."""
        year, month = self.call("sbatch", "--version").split()[1].split(".")[:2]
        return int(year), int(month)

    def submit(self, *members: Member, options: tuple[str, ...] = ()) -> str:
        """Hand it to sbatch as the engine does, and return its number; output goes to the file `out`."""
        script = batch_script(members, witness=witness_at(self.witness), records=str(self.records), shim=str(self.shim))
        words = ("sbatch", "--parsable", f"--output={self.folder}/out", f"--chdir={self.folder}", *options)
        return self.call(*words, stdin=script).strip()

    def wait(self, number: str) -> Ended:
        end = time.monotonic() + DEADLINE_S
        while True:
            text = self.call("scontrol", "-d", "show", "job", number)
            facts = dict(re.findall(r"(\w+)=(\S*)", text))
            if facts["JobState"] not in UNSETTLED:
                return Ended(facts["JobState"], facts["ExitCode"], facts["DerivedExitCode"])
            if time.monotonic() > end:
                pytest.fail(f"job {number} has not ended within {DEADLINE_S:g} s: {text}")
            time.sleep(0.1)

    def run(self, *members: Member, options: tuple[str, ...] = ()) -> Ended:
        return self.wait(self.submit(*members, options=options))

    def until(self, text: str) -> None:
        """Wait until the output has this text."""
        end = time.monotonic() + DEADLINE_S
        while text not in self.output():
            if time.monotonic() > end:
                pytest.fail(f"{text!r} is not in the output: {self.output()!r}")
            time.sleep(0.05)

    def output(self, name: str = "out") -> str:
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return ""

    def record(self, name: str) -> Record:
        """A record that is whole and has its own name as key."""
        line = (self.records / name).read_bytes().rstrip(b"\n")
        assert line[:18] == b"%08x %08x " % (len(line) - 18, zlib.crc32(line[18:]))
        words = json.loads(line[18:])
        assert isinstance(words, dict)
        assert words["key"] == name
        return words

    def names(self) -> list[str]:
        return sorted(path.name for path in self.records.iterdir())


def ended(record: Record) -> str:
    """code:signal of a record, or the errno of what could not start."""
    if record["launch"] is not None:
        return f"errno {record['launch']['errno']}"
    raw = record["raw"]
    return f"{os.WEXITSTATUS(raw)}:0" if os.WIFEXITED(raw) else f"0:{os.WTERMSIG(raw)}"
