"""The whole product on both engines: a home each, the same flow in each, and what every surface then says of its jobs.

Nothing here knows what a test expects.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 120.0
SETTINGS = """\
cpus = 32
mem = "64G"
kill_wait = 2
[slurm]
poll = 0.3
[settle]
record = 5
stable = 3
"""


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Shown:
    """What is shown of a job, as far as it must not depend on the engine."""

    state: str
    exit: str
    reason: str
    derived: str | None
    return_code: int | None
    verified: bool
    warnings: int
    attempts: tuple[tuple[str, str], ...]
    steps: tuple[Any, ...]

    @property
    def short(self) -> tuple[str, str, str | None]:
        return self.state, self.exit, self.derived


@dataclass(frozen=True)
class Place:
    """A folder and a home whose jobs run on one engine."""

    engine: str
    folder: Path
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, *args: str, **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "aver", *args], cwd=self.folder, env={**self.environment, **env},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, *args: str, **env: str) -> Answer:
        """What a user types."""
        process = self.start(*args, **env)
        out, err = process.communicate(timeout=DEADLINE_S)
        return Answer(process.returncode, out.decode(), err.decode())

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def shown(self, run: int | str) -> dict[str, Shown]:
        """All jobs of a run by their names."""
        answer = self("show", str(run), "--json")
        assert answer.status == 0, answer.err
        document = json.loads(answer.out)
        jobs = document["jobs"] if document["kind"] == "run" else [document["job"]]
        return {job["name"]: self._shown(job) for job in jobs}

    def _shown(self, job: dict[str, Any]) -> Shown:
        more: dict[str, Any] = {"attempts": [], "steps": []}
        if job["attempt"] > 1 or job["derived_exit"] not in (None, "0:0"):  # each question costs a process
            more = json.loads(self("show", str(job["id"]), "--json").out)
        return Shown(
            job["state"], _exit(job), job["reason"], job["derived_exit"], job["return_code"], job["verified"],
            len(job["warnings"]), tuple((one["state"], _exit(one)) for one in more["attempts"]),
            tuple(_step(step) for step in more["steps"]),
        )  # fmt: skip

    def leave(self) -> None:
        """Cancel what is not settled, and send the coordinator away."""
        runs = json.loads(self("runs", "--json").out)["runs"]
        numbers = [str(run["id"]) for run in runs if not run["is_settled"]]
        if numbers:
            self("cancel", *numbers)
            self("watch", *numbers, "--timeout", "30")
        self("stop")

    def until(self, predicate: Callable[[], object], what: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while not predicate():
            if time.monotonic() > end:
                pytest.fail(f"{self.engine}: {what}: not within {DEADLINE_S:g} s; {self('jobs').out}")
            time.sleep(0.02)

    def wait_for(self, name: str) -> None:
        self.until((self.folder / name).exists, f"{name} is there")


def _exit(facts: dict[str, Any]) -> str:
    return "?" if facts["exit"] is None else str(facts["exit"]["text"])


def _step(step: dict[str, Any]) -> tuple[Any, ...]:
    tasks = tuple((one["task"], one["state"], _exit(one), one["because"]) for one in step["task_ends"])
    return step["step"], step["state"], _exit(step), step["srun_code"], step["first_failed"], tasks


def write_flow(place: Place, name: str, jobs: Mapping[str, object]) -> str:
    """A flow whose jobs are short, so that Slurm lets them pass jobs of others that wait for many nodes."""
    return place.write("flow.yaml", json.dumps({"name": name, "defaults": {"time": "2m"}, "jobs": jobs}))


def run_flow(place: Place, name: str, jobs: Mapping[str, object]) -> tuple[Answer, dict[str, Shown]]:
    """Run a flow until it is settled."""
    flow = write_flow(place, name, jobs)
    answer = place("run", "--engine", place.engine, flow)
    return answer, place.shown(last_run(place))


def last_run(place: Place) -> int:
    runs = json.loads(place("runs", "--json").out)["runs"]
    return max(int(run["id"]) for run in runs)


def on_both(places: Mapping[str, Place], act: Callable[[Place], Any]) -> dict[str, Any]:
    """The same on both engines at the same time, by the engine's name."""
    with ThreadPoolExecutor(len(places)) as pool:
        futures = {name: pool.submit(act, place) for name, place in places.items()}
        return {name: future.result() for name, future in futures.items()}


def make_place(engine: str, base: Path, environment: Mapping[str, str]) -> Place:
    folder, home = base / engine, base / f"h-{engine}"
    folder.mkdir()
    home.mkdir()
    (base / "config.toml").write_text(SETTINGS)
    kept = {name: value for name, value in environment.items() if not name.startswith(("SLURM_", "AVER_"))}
    kept |= {"AVER_HOME": str(home), "AVER_CONFIG": str(base / "config.toml"), "SLURM_CONF": environment["SLURM_CONF"]}
    if os.environ.get("AVER_WITNESS"):
        kept["AVER_WITNESS"] = os.environ["AVER_WITNESS"]
    return Place(engine, folder, home, kept)
