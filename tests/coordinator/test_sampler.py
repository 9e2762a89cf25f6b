"""Memory and CPUs over time: what is measured, at which pace, and where it is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from aver.client.use.now import Scan, live_use, of_attempts
from aver.client.use.series import GAP_S, read_use
from aver.coordinator.sampler import MOST_SHARE, measured, pause_s, starts_here
from aver.coordinator.state.attempt import LiveAttempt
from aver.engines.api import ABSENT, Capabilities
from aver.model.job import Request
from aver.model.states import State
from live_home import LiveHome, wait_for

HOLD = f"exec {sys.executable} -c 'x = b\"1\" * (64 << 20); import time; time.sleep(600)'"


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    found = LiveHome(tmp_path / "home", tmp_path / "work")
    yield found
    found.end_everything()


def test_a_running_job_is_measured_until_its_end_whoever_dies(live: LiveHome) -> None:
    """The next coordinator goes on with the series, and `aver show` has it after the end."""
    job = live.run_text(HOLD)
    live.wait_running(job)
    started_at = live.attempt(job).started_at

    def points() -> int:
        use = read_use(live.home, job, job, 1, started_at)
        return 0 if use is None else len(use.points)

    assert wait_for(points, "the first point") >= 1
    live.kill_coordinator()
    live.connect_again()
    before = points()
    wait_for(lambda: points() > before, "a point of the next coordinator")
    with live.client() as client:
        client.call("cancel", ids=[job])
    live.settle([job])
    text = subprocess.run([sys.executable, "-m", "aver", "show", str(job), "--json"], capture_output=True, check=True)
    (use,) = json.loads(text.stdout)["use"]
    assert use["attempt"] == 1
    assert len(use["points"]) == points()
    assert all(one["memory_bytes"] >= 64 << 20 for one in use["points"])
    assert all(0 <= one["cpus"] < 2 for one in use["points"])
    shown = subprocess.run([sys.executable, "-m", "aver", "show", str(job)], capture_output=True, check=True, text=True)
    assert "  memory    " in shown.stdout


def attempt(number: int, age_s: float, can: Capabilities = Capabilities(), state: State = State.RUNNING) -> LiveAttempt:
    return LiveAttempt(
        run=1, job=number, index=0, attempt=1, key=f"0.{number}.1.0", request=Request(), engine="local", can=can,
        state=state, started_at=time.time() - age_s,
    )  # fmt: skip


def test_what_a_measurement_costs_sets_the_pace() -> None:
    """Never more than a thousandth of a CPU, and not more often than a series has points."""
    assert pause_s(0.0001) == GAP_S
    assert pause_s(0.050) == pytest.approx(0.050 / MOST_SHARE)


def test_only_what_has_run_here_for_a_while_is_measured() -> None:
    """Nobody looks at the processes for the sake of short jobs, of waiting ones, or of jobs of a cluster."""
    others = [attempt(1, 1), attempt(2, 60, ABSENT), attempt(3, 60, state=State.PENDING)]
    assert measured(starts_here(others), time.time()) == []
    (found,) = measured(starts_here([*others, attempt(4, 60)]), time.time())
    assert (found.run, found.job, found.attempt) == (1, 4, 1)


@pytest.mark.parametrize(("engine", "is_measured"), [("podman", True), ("docker", False)])
def test_what_a_daemon_runs_is_unknown(engine: str, is_measured: bool) -> None:
    """The processes that are found for a job in docker are those of its client: they are listed, and not measured."""
    key = f"0.7.1.{os.getpid()}"
    env = {**os.environ, "AVER_KEY": key, "AVER_CONTAINER": engine}
    with subprocess.Popen(["sleep", "600"], env=env) as client:
        wait_for(lambda: key in live_use(), "the process")
        uses = live_use()
        client.kill()
    assert uses[key].pids == [client.pid]
    assert (key in of_attempts(uses)) is is_measured


def test_a_second_look_finds_the_same_processes(live: LiveHome) -> None:
    """What is remembered of processes changes nothing of what is found, also of a program that began in between."""
    scan = Scan()
    scan.use()
    job = live.run_text(HOLD)
    live.wait_running(job)
    key = live.attempt(job).key
    wait_for(lambda: key in scan.use() and scan.use()[key].memory_bytes >= 64 << 20, "the job's memory")
    assert scan.use()[key].pids == live_use()[key].pids
