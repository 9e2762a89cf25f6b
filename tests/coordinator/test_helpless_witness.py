"""A witness that is stopped, or that hangs while it starts its job: limits and cancellations hold all the same."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.model.job import Argv, JobSpec, Request, Streams
from live_home import LiveHome, processes_with, wait_for

FREEZER = Path("/sys/fs/cgroup/freezer")
HOLD = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(300)
"""


@pytest.fixture
def live(aver_home: Path, tmp_path: Path) -> LiveHome:
    return LiveHome(aver_home, tmp_path)


@contextlib.contextmanager
def leased(program: Path) -> Iterator[None]:
    """A program whose start waits, as on a server that does not answer: somebody has a lease on its file."""
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(program)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
    finally:
        holder.kill()
        holder.wait()


def ask(live: LiveHome, op: str, number: int) -> str:
    with live.client() as client:
        (result,) = client.call(op, ids=[number], by="tester")["results"]
    return str(result)


def verdict(live: LiveHome, number: int) -> tuple[str, str]:
    live.settle([number])
    row = live.job(number)
    return str(row.state), row.reason


def test_a_stopped_witness_keeps_the_time_limit(live: LiveHome) -> None:
    """A job that stops its witness is over its limit all the same."""
    number = live.run_text("kill -STOP $PPID; sleep 300", time_s=2)
    assert verdict(live, number) == ("TIMEOUT", "TimeLimit")


def test_a_job_that_stops_its_witness_again_and_again(live: LiveHome) -> None:
    """It is ended by the coordinator itself."""
    script = "trap '' TERM; while :; do kill -STOP $PPID; done"
    number = live.submit(JobSpec("job", Argv(("bash", "-c", script)), request=Request(time_s=2), kill_wait_s=1))
    assert verdict(live, number) == ("TIMEOUT", "TimeLimit")


def test_a_stopped_witness_is_cancelled(live: LiveHome, tmp_path: Path) -> None:
    number = live.run_text(f"touch {tmp_path}/ready; kill -STOP $PPID; sleep 300")
    wait_for(lambda: (tmp_path / "ready").exists(), "the job runs")
    ask(live, "cancel", number)
    assert verdict(live, number)[0] == "CANCELLED"


def test_a_start_that_hangs_is_shown_and_cancelled(live: LiveHome, tmp_path: Path) -> None:
    """It is PENDING (Starting), and a cancel ends it."""
    with leased(tmp_path / "program"):
        number = live.submit(JobSpec("job", Argv((f"{tmp_path}/program",))))
        wait_for(lambda: live.job(number).reason == "Starting", "its reason says so")
        ask(live, "cancel", number)
        assert verdict(live, number)[0] == "CANCELLED"


@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_a_leased_file_is_waited_for(live: LiveHome, tmp_path: Path, name: str) -> None:
    """As a shell does, and not called a failure: a file server may have it for a moment."""
    with leased(tmp_path / "file"):
        streams = Streams(**{name: f"{tmp_path}/file"})
        number = live.submit(JobSpec("job", Argv(("cat",)), streams=streams))
        wait_for(lambda: live.job(number).reason == "Starting", "its reason says so")
    assert verdict(live, number)[0] == "COMPLETED"


def test_a_start_that_hangs_reaches_its_limit(live: LiveHome, tmp_path: Path) -> None:
    """Its limit counts from its order on."""
    with leased(tmp_path / "program"):
        number = live.submit(JobSpec("job", Argv((f"{tmp_path}/program",)), request=Request(time_s=3)))
        assert verdict(live, number) == ("TIMEOUT", "TimeLimit")


def test_a_job_that_is_being_ended_is_not_suspended(live: LiveHome, tmp_path: Path) -> None:
    """Suspend says why not, and the job is not shown as what it is not."""
    script = f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.1; done"
    number = live.submit(JobSpec("job", Argv(("bash", "-c", script)), kill_wait_s=4))
    wait_for(lambda: (tmp_path / "ready").exists(), "the job runs")
    ask(live, "cancel", number)
    assert "being ended" in ask(live, "suspend", number)
    assert str(live.job(number).state) != "SUSPENDED"
    assert verdict(live, number)[0] == "CANCELLED"
    assert os.path.exists(tmp_path / "ready")


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A cgroup whose processes not even KILL ends while they are frozen."""
    folder = FREEZER / f"aver-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no v1 freezer cgroup can be made: {error}")
    yield folder
    (folder / "freezer.state").write_text("THAWED")
    wait_for(lambda: not (folder / "cgroup.procs").read_text(), "the frozen processes have ended")
    folder.rmdir()


@pytest.mark.parametrize(("state", "ends_as"), [("COMPLETING", "CANCELLED"), ("RUNNING", "TIMEOUT")])
def test_a_job_that_not_even_kill_ends_says_so(live: LiveHome, freezer: Path, state: str, ends_as: str) -> None:
    """While it lives on, it has no verdict, and a reason that `aver why` puts into words; then it has its verdict."""
    mark = f"300.{os.getpid()}"
    limit = {"time_s": 2} if ends_as == "TIMEOUT" else {}
    spec = JobSpec("job", Argv(("sleep", mark)), request=Request(**limit), kill_wait_s=0.5)  # type: ignore[arg-type]
    number = live.submit(spec)
    live.wait_running(number)
    (freezer / "cgroup.procs").write_text(str(*processes_with(mark)))
    (freezer / "freezer.state").write_text("FROZEN")
    if ends_as == "CANCELLED":
        ask(live, "cancel", number)
    wait_for(lambda: live.job(number).reason == "CannotBeEnded", "the job is said to live on")
    assert live.job(number).state == state
    said = subprocess.run(
        [sys.executable, "-m", "aver", "why", str(number)],
        env={**os.environ, "AVER_HOME": str(live.home.path)}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "It can't be ended: KILL was sent, and it lives on." in said.stdout
    (freezer / "freezer.state").write_text("THAWED")
    assert verdict(live, number)[0] == ends_as


def test_a_suspension_is_shown_when_its_witness_has_done_it(live: LiveHome, freezer: Path) -> None:
    """Asked for, durable and not done is RUNNING; a coordinator that comes back asks again."""
    mark = f"300.{os.getpid()}"
    number = live.submit(JobSpec("job", Argv(("sleep", mark))))
    live.wait_running(number)
    (pid,) = processes_with(mark)
    (freezer / "cgroup.procs").write_text(str(_parent(pid)))
    (freezer / "freezer.state").write_text("FROZEN")
    assert "not all of its processes are stopped yet" in ask(live, "suspend", number)
    live.kill_coordinator()
    live.connect_again()
    assert (str(live.job(number).state), _state(pid)) == ("RUNNING", "S")
    (freezer / "freezer.state").write_text("THAWED")
    wait_for(lambda: str(live.job(number).state) == "SUSPENDED", "it is suspended")
    assert _state(pid) == "T"
    assert "resumed" in ask(live, "resume", number)
    assert (str(live.job(number).state), _state(pid)) == ("RUNNING", "S")
    ask(live, "cancel", number)
    assert verdict(live, number)[0] == "CANCELLED"


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
