"""A coordinator that a job's own command starts is none of the job's processes, and its witnesses are not either."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from live_home import LiveHome, is_alive, wait_for

AVER = f"{sys.executable} -m aver"
# Runs its arguments as a child, to which every orphan below comes: as tini, bwrap and a container's init do.
SUB_REAPER = (
    "import ctypes, subprocess, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); sys.exit(subprocess.call(sys.argv[1:]))"
)
UNDER = {"shell": (), "sub-reaper": (sys.executable, "-c", SUB_REAPER)}


def run_aver(home: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "AVER_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-m", "aver", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


class Nested:
    """A job that has started the coordinator, and an inner job that it has submitted there; the inner one ends, with
    exit 0, once `finish` is called, the outer one goes on."""

    def __init__(self, home: Path, folder: Path, under: tuple[str, ...], options: tuple[str, ...]) -> None:
        self.live, self._folder = LiveHome(home, folder), folder
        inner = "until [ -e finish ]; do sleep 0.05; done"
        script = (
            f"touch ready; until [ -e go ]; do sleep 0.05; done; {AVER} submit -- sh -c '{inner}' > part && "
            "mv part number; until [ -e leave ]; do sleep 0.05; done; exit 3"
        )
        submitted = run_aver(home, folder, "submit", *options, "--", *under, "sh", "-c", script)
        self.outer = int(submitted.stdout)
        wait_for(lambda: (folder / "ready").exists(), "the job runs")
        assert self.live.kill_coordinator()
        (folder / "go").touch()
        self.inner = int(wait_for(lambda: self._text("number"), "the inner job's number"))
        self.live.wait_running(self.inner)
        coordinator = self.live.coordinator()
        assert coordinator is not None
        self.coordinator = coordinator

    def _text(self, name: str) -> str:
        path = self._folder / name
        return path.read_text() if path.exists() else ""

    def leave(self) -> None:
        (self._folder / "leave").touch()

    def finish(self) -> None:
        (self._folder / "finish").touch()

    def end_of(self, number: int) -> str:
        def ended() -> str | None:
            row = self.live.job(number)
            return f"{row.state} {row.exit}" if row.state.is_settled else None

        return wait_for(ended, f"the verdict of job {number}") or ""

    def assert_coordinator_lives(self) -> None:
        assert self.live.coordinator() == self.coordinator
        assert is_alive(self.coordinator)

    def assert_inner_lives(self) -> None:
        """The inner job runs on under its witness, and its verdict is what it did."""
        assert not self.live.job(self.inner).state.is_settled
        assert is_alive(self.live.witness_of(self.inner))
        self.finish()
        assert self.end_of(self.inner) == "COMPLETED 0:0"


@pytest.mark.parametrize(("under", "options"), [("shell", ()), ("sub-reaper", ("--mem", "500M"))])
def test_it_outlives_the_job(aver_home: Path, tmp_path: Path, under: str, options: tuple[str, ...]) -> None:
    """The coordinator is killed while a job runs; the job's own `aver submit` starts the next, which goes on when the
    job has ended, and so do its jobs. The job's verdict is right."""
    nested = Nested(aver_home, tmp_path, UNDER[under], options)
    nested.leave()
    assert nested.end_of(nested.outer) == "FAILED 3:0"
    nested.assert_coordinator_lives()
    nested.assert_inner_lives()


@pytest.mark.parametrize("options", [(), ("--mem", "500M")])
def test_it_outlives_the_jobs_cancellation(aver_home: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Every process of the job is ended, the coordinator that is below it is not, nor is what that runs."""
    nested = Nested(aver_home, tmp_path, UNDER["sub-reaper"], options)
    assert run_aver(aver_home, tmp_path, "cancel", str(nested.outer)).returncode == 0
    assert nested.end_of(nested.outer) == "CANCELLED 0:15"
    nested.assert_coordinator_lives()
    nested.assert_inner_lives()


@pytest.mark.parametrize(("under", "number"), [("shell", signal.SIGKILL), ("sub-reaper", signal.SIGTERM)])
def test_its_witnesses_outlive_the_job(aver_home: Path, tmp_path: Path, under: str, number: signal.Signals) -> None:
    """The coordinator is stopped, or killed: its witnesses become children of the job, and the job's end leaves them
    alone."""
    nested = Nested(aver_home, tmp_path, UNDER[under], ())
    assert nested.live.kill_coordinator(number)
    wait_for(lambda: not is_alive(nested.coordinator), "the coordinator's end")
    assert run_aver(aver_home, tmp_path, "cancel", str(nested.outer)).returncode == 0
    assert nested.end_of(nested.outer) == "CANCELLED 0:15"
    nested.assert_inner_lives()


def test_suspension_of_the_job_is_not_theirs(aver_home: Path, tmp_path: Path) -> None:
    """A job that is suspended stops neither the coordinator that it started nor the jobs there."""
    nested = Nested(aver_home, tmp_path, UNDER["sub-reaper"], ())
    assert run_aver(aver_home, tmp_path, "suspend", str(nested.outer)).returncode == 0
    wait_for(lambda: nested.live.job(nested.outer).state == "SUSPENDED", "the job is suspended")
    nested.assert_inner_lives()
    nested.assert_coordinator_lives()
    assert run_aver(aver_home, tmp_path, "cancel", str(nested.outer)).returncode == 0
    assert nested.end_of(nested.outer) == "CANCELLED 0:15"


def test_they_outlive_the_jobs_witness(aver_home: Path, tmp_path: Path) -> None:
    """The coordinator, another one than that which the job started, ends what the job of a killed witness left."""
    nested = Nested(aver_home, tmp_path, UNDER["sub-reaper"], ())
    assert nested.live.kill_coordinator()
    nested.live.connect_again()
    os.kill(nested.live.witness_of(nested.outer), signal.SIGKILL)
    assert nested.end_of(nested.outer) == "UNVERIFIED None"
    nested.assert_inner_lives()


def test_one_of_another_home_outlives_the_job_and_is_reaped(aver_home: Path, tmp_path: Path) -> None:
    """A job starts the coordinator of another home, which goes on after it; when that one has left, no zombie stays."""
    other = tmp_path / "other"
    live, strange = LiveHome(aver_home, tmp_path), LiveHome(other, tmp_path)
    busy = int(run_aver(aver_home, tmp_path, "submit", "--", "sleep", "600").stdout)
    script = f"AVER_HOME={other} {AVER} submit -- true"
    assert run_aver(aver_home, tmp_path, "run", "--", "sh", "-c", script).returncode == 0
    coordinator = strange.coordinator()
    assert coordinator is not None
    wait_for(lambda: live.coordinator() == _parent(coordinator), "the job's witness has left")
    assert run_aver(other, tmp_path, "stop").returncode == 0
    wait_for(lambda: not Path(f"/proc/{coordinator}").exists(), "the other home's coordinator is gone")
    assert run_aver(aver_home, tmp_path, "cancel", str(busy)).returncode == 0


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
