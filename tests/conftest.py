"""Fixtures that every test may use: a home of its own, the witness, and waiting with a deadline."""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
WITNESS = ROOT / "src" / "aver" / "witness"
PR_GET_CHILD_SUBREAPER = 37

Seen = TypeVar("Seen")

if (Path.home() / ".config" / "aver" / "config.toml").exists():  # the settings of whoever runs the tests
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="aver-no-settings-")
os.environ.setdefault("AVER_RESTART", "no")  # who kills a coordinator says when the next one comes

# How long an example takes says how busy the machine is, and nothing about what it tests.
hypothesis.settings.register_profile(
    "aver", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("aver")

for _number in (
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
):  # a suite in the background, or under nohup, ignores them
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)


def wait_until(predicate: Callable[[], Seen], deadline: float = 20.0) -> Seen:
    """Poll until `predicate` gives something true, and return it; fail with the last thing seen."""
    end = time.monotonic() + deadline
    pause = 0.002
    while True:
        seen = predicate()
        if seen:
            return seen
        if time.monotonic() > end:
            pytest.fail(f"not so within {deadline:g} s; last seen: {seen!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., object]:
    return wait_until


@pytest.fixture(autouse=True, scope="module")
def _no_orphans_come_to_this_process() -> Iterator[None]:
    """Tests that leave their process a sub-reaper make every later coordinator a zombie of it: nobody reaps those."""
    yield
    takes_them = ctypes.c_int()
    ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(takes_them), 0, 0, 0)
    assert takes_them.value == 0, "an engine of this module is still open"


@pytest.fixture(scope="session")
def witness_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The witness: the one that AVER_WITNESS names, else that of this checkout, compiled if it is missing or stale."""
    named = os.environ.get("AVER_WITNESS")
    if named:
        return Path(named)
    binary = WITNESS / "aver-witness"
    # The processes of one session share the folder above their own.
    with (tmp_path_factory.getbasetemp().parent / "witness.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = [WITNESS / "witness.c", WITNESS / "build.py"]
        if not binary.exists() or any(source.stat().st_mtime > binary.stat().st_mtime for source in sources):
            spec = importlib.util.spec_from_file_location("witness_build", WITNESS / "build.py")
            assert spec is not None
            assert spec.loader is not None
            build = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(build)
            build.compile(WITNESS / "witness.c", binary)
    return binary


@pytest.fixture
def aver_home(monkeypatch: pytest.MonkeyPatch, witness_binary: Path) -> Iterator[Path]:
    """An empty home with a short path, named by AVER_HOME. Its coordinator and its jobs are ended afterwards.

    No coordinator may have logged a move of a job or attempt that the table of states does not have.
    """
    home = Path(tempfile.mkdtemp(prefix="aver-", dir="/tmp"))
    monkeypatch.setenv("AVER_HOME", str(home))
    try:
        yield home
    finally:
        stop_coordinator(home)
        end_jobs(home)
        wrong_moves = _wrong_moves(home / "coordinator.log")
        shutil.rmtree(home, ignore_errors=True)
    assert wrong_moves == []


def _wrong_moves(log: Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return [line for line in lines if "a move that docs/design/states.md lacks" in line]


def stop_coordinator(home: Path, deadline: float = 10.0) -> None:
    """Ask the home's coordinator to leave; kill it, and only it, if it does not."""
    if coordinator_pid(home) is None:
        return
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(deadline)
            client.connect(str(home / "sock"))
            client.sendall(json.dumps({"op": "stop"}).encode() + b"\n")
            client.recv(4096)
    except OSError:
        pass
    end = time.monotonic() + deadline
    while coordinator_pid(home) is not None:
        if time.monotonic() > end:
            kill_coordinator(home)
            wait_until(lambda: coordinator_pid(home) is None, 10.0)
        time.sleep(0.005)


def coordinator_pid(home: Path) -> int | None:
    """The pid in the lock's text, if that process lives and is this home's coordinator.

    The lock itself is not touched: a coordinator that starts meanwhile would find it taken.
    """
    try:
        pid = json.loads((home / "lock").read_bytes())["pid"]
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) and os.fsencode(home) in command else None


def kill_coordinator(home: Path) -> None:
    """Send SIGKILL to the home's coordinator, if there is one."""
    pid = coordinator_pid(home)
    if pid is not None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def end_jobs(home: Path, deadline: float = 10.0) -> None:
    """End what still runs under the witnesses of a home whose coordinator has left."""
    end = time.monotonic() + deadline
    for path in (home / "witness").glob("*.sock"):
        while (pid := _running_job(path)) is not None and time.monotonic() < end:
            try:
                os.killpg(pid, signal.SIGKILL)  # the job is a session of its own; its witness ends the rest
            except (ProcessLookupError, PermissionError):
                pass
            time.sleep(0.01)


def _running_job(path: Path) -> int | None:
    """The pid of the job that the witness behind this socket runs, from its hello line."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1.0)
            client.connect(str(path))
            line = client.recv(65536).split(b"\n", 1)[0]
            pid = json.loads(line[18:])["pid"]
    except (OSError, ValueError, KeyError):
        return None
    return pid if isinstance(pid, int) else None
