"""Memory and CPUs over time: what is measured, at which pace, and where it is shown."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aver.client.use.now import Scan, live_use
from aver.client.use.series import GAP_S, read_use
from aver.coordinator.background import Background
from aver.coordinator.sampler import MOST_SHARE, Sampler
from aver.coordinator.state.attempt import LiveAttempt
from aver.engines.api import ABSENT, Capabilities
from aver.home import Home
from aver.model.job import Argv, Container, JobSpec, Request, Setup
from aver.model.states import State
from live_home import LiveHome, wait_for

PLAIN = JobSpec("plain", Argv(("true",)))
BOXED = JobSpec("boxed", Argv(("true",)), setup=Setup(container=Container("x", "docker")))
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


def attempt(
    number: int, age_s: float, can: Capabilities = Capabilities(), state: State = State.RUNNING, index: int = 0
) -> LiveAttempt:
    return LiveAttempt(
        run=1, job=number, index=index, attempt=1, key=f"0.{number}.1.0", request=Request(), engine="local", can=can,
        state=state, started_at=time.time() - age_s,
    )  # fmt: skip


def sampled(home: Home, attempts: list[LiveAttempt], cost_s: float) -> tuple[Sampler, float]:
    """One measurement that takes so much CPU time: the sampler after it, and the pause that it then makes."""
    clock = iter([0.0, cost_s])
    background = Background()
    run = SimpleNamespace(spec=lambda index: (PLAIN, BOXED)[index])
    machine: Any = SimpleNamespace(attempts={one.key: one for one in attempts}, runs={1: run})
    uses = {one.key: live_use_of_us() for one in attempts}
    sampler = Sampler(home, machine, background, lambda: uses, lambda: next(clock))
    sampler._due_s = 0.0
    sampler.look(time.time())
    if background.is_busy:
        assert select.select([background], [], [], 60)[0]
        background.take()
    due = sampler.next_due()
    assert due is not None
    return sampler, due - time.monotonic()


def live_use_of_us() -> Any:
    return SimpleNamespace(cpu_s=1.0, memory_bytes=4096, pids=[os.getpid()])


def test_what_a_measurement_costs_sets_the_pace(tmp_path: Path) -> None:
    """Never more than a thousandth of a CPU, and not more often than a series has points."""
    home = Home(tmp_path / "home")
    home.prepare()
    _, pause = sampled(home, [attempt(1, 60)], cost_s=0.0001)
    assert GAP_S - 1 < pause <= GAP_S
    _, pause = sampled(home, [attempt(1, 60)], cost_s=0.050)
    assert pause == pytest.approx(0.050 / MOST_SHARE, abs=1)


def test_only_what_has_run_here_for_a_while_is_measured(tmp_path: Path) -> None:
    """Short jobs have no file, and nobody looks at the processes for their sake; nor do jobs of a cluster, or of
    docker's daemon."""
    home = Home(tmp_path / "home")
    home.prepare()
    others = [attempt(1, 1), attempt(2, 60, ABSENT), attempt(3, 60, state=State.PENDING), attempt(4, 60, index=1)]
    sampled(home, others, cost_s=0.0)
    assert list((home.path / "use").iterdir()) == []
    sampled(home, [*others, attempt(4, 60)], cost_s=0.0)
    assert [path.name for path in home.use(1).iterdir()] == ["4.1"]


def test_a_second_look_finds_the_same_processes(live: LiveHome) -> None:
    """What is remembered of processes changes nothing of what is found, also of a program that began in between."""
    scan = Scan()
    scan.use()
    job = live.run_text(HOLD)
    live.wait_running(job)
    key = live.attempt(job).key
    wait_for(lambda: key in scan.use() and scan.use()[key].memory_bytes >= 64 << 20, "the job's memory")
    assert scan.use()[key].pids == live_use()[key].pids
