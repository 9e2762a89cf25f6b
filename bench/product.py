"""Aver in a home of its own, driven through its own client and commands."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from figures import FOLDER
from processes import wait_for, witnesses_of

from aver.home import Home
from aver.model.codec import encode
from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Needs, Origin, Streams, Submission
from aver.protocol.client import Client

# A process inherits the peak of the one that starts it: a small one in between has less than what it measures.
_MEASURE = """
import os, sys, time
began = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Product:
    """A home, its settings and its coordinator; all gone at the end."""

    def __init__(self, slots: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="aver-bench-", dir=FOLDER))
        self.home = Home(self.folder / "home")
        self.on_exit: Callable[[], object] = lambda: None  # after the coordinator has left
        self._environment = {"AVER_HOME": str(self.home.path), "AVER_CONFIG": str(self.folder / "config.toml")}
        (self.folder / "config.toml").write_text(f'cpus = {slots}\nmem = "1000G"\nidle_exit = 600\n')

    def __enter__(self) -> Self:
        os.environ.update(self._environment)
        self.settle([self.submit(one_job("first", "/bin/true"))])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pid = self.pid
        client = self.connect()
        client.call("stop")
        client.close()
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), 60, "the coordinator's leaving")
        self.on_exit()
        shutil.rmtree(self.folder)

    def connect(self) -> Client:
        return Client.connect(self.home)

    @property
    def pid(self) -> int:
        client = self.connect()
        pid = client.call("ping")["pid"]
        client.close()
        assert isinstance(pid, int)
        return pid

    def witnesses(self) -> list[int]:
        return witnesses_of(self.home.path)

    def submit(self, flow: FlowSpec, client: Client | None = None, engine: str = "local") -> int:
        """Submit, and return the run's number once it is durable."""
        own = client or self.connect()
        environment = [f"{name}={value}" for name, value in os.environ.items()]
        run = own.call("submit", submission=encode(Submission(flow, self.origin(), engine=engine)), env=environment)[
            "run"
        ]
        if client is None:
            own.close()
        assert isinstance(run, int)
        return run

    def settle(self, runs: list[int]) -> None:
        """Return when the verdict of each of these runs is there to see."""
        client = self.connect()
        for _ in client.watch(runs):
            pass
        client.close()

    def cancel(self, run: int) -> None:
        client = self.connect()
        client.call("cancel", ids=[run], by="bench", signal=None, now=True)
        client.close()
        self.settle([run])

    def aver(self, *arguments: str) -> tuple[str, float, int]:
        """Run the command; return its output, seconds and peak memory in bytes."""
        words = [sys.executable, "-I", "-S", "-c", _MEASURE, sys.executable, "-m", "aver", *arguments]
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"aver {' '.join(arguments)} ended with status {done.returncode}: {done.stderr}")
        took, peak_kb = done.stderr.splitlines()[-1].split()
        return done.stdout, float(took), int(peak_kb) * 1024

    def map(self, arguments: list[str], count: int, folder: str) -> float:
        """Run `aver map` in a folder with so many lines on stdin; return its seconds."""
        lines = self.folder / f"lines-{count}"
        lines.write_text("".join(f"{at}\n" for at in range(count)))
        began = time.perf_counter()
        with lines.open() as source:
            words = [sys.executable, "-m", "aver", "map", *arguments]
            status = subprocess.run(
                words, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, check=False
            ).returncode
        if status != 0:
            raise RuntimeError(f"aver map {' '.join(arguments)} ended with status {status}")
        return time.perf_counter() - began

    def submit_file(self, flow: dict[str, object]) -> tuple[int, float, int]:
        """Write a flow and give it to `aver submit`; return run, seconds and the command's peak memory."""
        path = self.folder / "flow.yaml"
        path.write_text("\n".join(_yaml(flow)))
        output, took, peak = self.aver("submit", str(path))
        return int("".join(letter for letter in output.split()[-1] if letter.isdigit())), took, peak

    def origin(self) -> Origin:
        umask = os.umask(0o022)
        os.umask(umask)
        return Origin("bench", os.geteuid(), socket.gethostname(), str(self.folder), umask)


def one_job(name: str, *argv: str, stdout: str = "/dev/null") -> FlowSpec:
    return FlowSpec(name, (JobSpec(name, Argv(argv), streams=Streams(stdout=stdout)),), is_single=True)


def many_jobs(name: str, count: int, *argv: str) -> FlowSpec:
    return FlowSpec(name, (matrix_job(name, count, Needs(), *argv),))


def matrix_job(name: str, count: int, needs: Needs, *argv: str) -> JobSpec:
    matrix = Matrix((("i", tuple(str(at) for at in range(count))),))
    return JobSpec(name, Argv(argv), needs=needs, matrix=matrix, streams=Streams(stdout="/dev/null"))


def _yaml(flow: dict[str, object]) -> list[str]:
    """One line per job, as people write it; JSON's braces are YAML's."""
    jobs = flow["jobs"]
    assert isinstance(jobs, dict)
    return [f"name: {flow['name']}", "jobs:", *(f"  {name}: {json.dumps(job)}" for name, job in jobs.items()), ""]
