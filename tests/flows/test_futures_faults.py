"""The fault table of `aver.Executor`: whatever dies, each future settles with the true cause; nothing runs twice."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import call_kit as kit
import pytest
from flow_lab import Lab

import aver
from aver.errors import CantWriteError
from aver.home import Home
from aver.protocol.client import Client
from aver.store.read.reader import Reader

DEADLINE_S = 60.0
CALLS = 3


@pytest.fixture
def here(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(lab.folder)
    return lab


def witness_of(number: int) -> int:
    """The pid of the witness of a running job, as it said itself."""
    import json

    reader = Reader.open(Home.find().database)
    assert reader is not None
    with reader:
        for stored in reader.events(job=number):
            if getattr(stored.event, "source", "") == "witness":
                return int(json.loads(getattr(stored.event, "said"))["witness"])  # noqa: B009
    raise AssertionError(f"nobody witnesses job {number}")


def waiting_calls(executor: aver.Executor, lab: Lab, **options: object) -> list[aver.Future[str]]:
    """Calls that run until `go` is there, all of them running."""
    futures = [executor.submit(kit.note_and_wait, "ran", str(number), "go", aver=options) for number in range(CALLS)]
    lab.until(lambda: len(lab.lines("ran")) == CALLS, "they do not run")
    return futures


def start_caller(lab: Lab, count: int = CALLS) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, kit.__file__, "named", "ran", "go", str(count)],
        cwd=lab.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def found_again(count: int) -> list[str]:
    """What a new executor of the same name gets, each call submitted again with its key."""
    with aver.Executor(name="named") as executor:
        futures = [
            executor.submit(kit.note_and_wait, "ran", str(number), "go", aver={"key": f"call-{number}"})
            for number in range(count)
        ]
        return [future.result(DEADLINE_S) for future in futures]


# ---- while the caller waits -------------------------------------------------------------------------


def test_the_coordinator_is_killed_while_futures_wait(here: Lab) -> None:
    with aver.Executor() as executor:
        futures = waiting_calls(executor, here)
        here.kill()
        here.let_go("go")
        assert [future.result(DEADLINE_S) for future in futures] == ["0", "1", "2"]
    assert Counter(here.lines("ran")) == Counter("012")


def test_a_witness_is_killed(here: Lab) -> None:
    """Nobody saw how it ended: Lost, and only that one."""
    with aver.Executor() as executor:
        futures = waiting_calls(executor, here)
        assert futures[1].job is not None
        os.kill(witness_of(futures[1].job.number), signal.SIGKILL)
        error = futures[1].exception(DEADLINE_S)
        assert isinstance(error, aver.Lost)
        assert error.verdict is not None
        assert error.verdict.state == "UNVERIFIED"
        here.let_go("go")
        assert [futures[0].result(DEADLINE_S), futures[2].result(DEADLINE_S)] == ["0", "2"]
    assert Counter(here.lines("ran")) == Counter("012")


def test_the_caller_is_killed_while_it_waits(here: Lab) -> None:
    """Its jobs go on, and an executor of the same name has their results; nothing runs twice."""
    with start_caller(here) as caller:
        here.until(lambda: len(here.lines("ran")) == CALLS, "they do not run")
        caller.kill()
    here.let_go("go")
    futures = aver.Executor(name="named").futures
    assert [future.result(DEADLINE_S) for future in futures] == ["0", "1", "2"]
    assert found_again(CALLS) == ["0", "1", "2"]
    assert Counter(here.lines("ran")) == Counter("012")


def test_ctrl_c_cancels_what_the_process_submitted(here: Lab) -> None:
    """Without a with statement too, at the end of the process."""
    with start_caller(here) as caller:
        here.until(lambda: len(here.lines("ran")) == CALLS, "they do not run")
        assert caller.stdout is not None
        assert caller.stdout.readline() == "submitted\n"
        caller.send_signal(signal.SIGINT)
        assert caller.wait(DEADLINE_S) != 0
    for future in aver.Executor(name="named").futures:
        with pytest.raises(aver.Cancelled):
            future.result(DEADLINE_S)


@pytest.mark.parametrize(
    ("call", "options", "kind"),
    [
        ((kit.take_memory, 300), {"mem": "60M"}, aver.OutOfMemory),
        ((kit.note_and_wait, "x", "x", "never"), {"time": "1s"}, aver.TimedOut),
        ((kit.generator,), {}, aver.UnusableResult),
        ((kit.write_nothing_more, "value"), {}, aver.Exited),
        ((kit.kill_self,), {}, aver.KilledBySignal),
        ((pow, 1, 1), {"folder": "/proc/none/x"}, aver.LaunchFailed),
    ],
    ids=["out of memory", "timeout", "unpicklable", "full disk", "killed", "launch"],
)
def test_one_dead_job_hurts_no_other(here: Lab, call: Any, options: Any, kind: type[aver.JobError]) -> None:
    with aver.Executor() as executor:
        futures = [executor.submit(pow, 2, 3), executor.submit(*call, aver=options), executor.submit(pow, 2, 4)]
        error = futures[1].exception(DEADLINE_S)
        assert type(error) is kind, error
        assert error.job is not None
        assert [futures[0].result(DEADLINE_S), futures[2].result(DEADLINE_S)] == [8, 16]


def test_a_full_disk_is_in_the_log_tail(here: Lab) -> None:
    with aver.Executor() as executor:
        error = executor.submit(kit.write_nothing_more, "value").exception(DEADLINE_S)
        assert isinstance(error, aver.Exited)
        assert error.verdict is not None
        assert error.verdict.exit is not None
        assert error.verdict.exit.code == 1


def test_an_import_error_in_the_job_is_raised(here: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is there for the caller and not for the job: the job's own exception says so."""
    (here.folder / "gone_module.py").write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(here.folder)
    import gone_module  # type: ignore[import-not-found]

    (here.folder / "gone_module.py").unlink()
    with aver.Executor() as executor:
        error = executor.submit(gone_module.f).exception(DEADLINE_S)
    assert type(error) is ModuleNotFoundError
    assert "gone_module" in str(error)


# ---- while calls are submitted ----------------------------------------------------------------------


@pytest.mark.parametrize("point", ["submit-files-written", "before-commit", "committed", "acted"])
def test_the_coordinator_is_killed_while_calls_are_submitted(
    here: Lab, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The first coordinator dies there; the next one is asked again, and each call runs once."""
    monkeypatch.setenv("AVER_CRASH_AT", point)
    client = Client.connect(Home.find())  # it stays while somebody is connected
    monkeypatch.delenv("AVER_CRASH_AT")
    pid = Home.find().holder()["pid"]
    here.let_go("go")
    with aver.Executor() as executor:
        futures = [executor.submit(kit.note_and_wait, "ran", str(number), "go") for number in range(CALLS)]
        assert [future.result(DEADLINE_S) for future in futures] == ["0", "1", "2"]
    client.close()
    assert Home.find().holder().get("pid") != pid
    assert Counter(here.lines("ran")) == Counter("012")


def test_a_full_disk_while_calls_are_submitted(here: Lab) -> None:
    """The call can't be written: its future says so, and nothing is submitted. With room again the next one runs."""
    with aver.Executor() as executor:
        assert executor.submit(pow, 2, 2).result(DEADLINE_S) == 4
        with no_file_grows():
            error = executor.submit(kit.note, "ran", "1").exception(DEADLINE_S)
        assert isinstance(error, CantWriteError)
        assert executor.submit(pow, 2, 3).result(DEADLINE_S) == 8
    assert here.lines("ran") == []


@contextlib.contextmanager
def no_file_grows() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_cancel_while_calls_are_submitted(here: Lab) -> None:
    """At whatever instant: cancelled, or run once with its result; never both, and never a hang."""
    with aver.Executor() as executor:
        futures = [executor.submit(kit.note, "ran", str(number)) for number in range(20)]
        for future in futures:
            future.cancel()
    ran = Counter(here.lines("ran"))
    assert all(count == 1 for count in ran.values())
    for number, future in enumerate(futures):
        assert future.cancelled() or (future.result(0) == str(number) and ran[str(number)] == 1)


# ---- at random --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_random_deaths(here: Lab, seed: int) -> None:
    random_trial(here, random.Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 200))
def test_more_random_deaths(here: Lab, seed: int) -> None:
    random_trial(here, random.Random(seed))


def random_trial(lab: Lab, chance: random.Random) -> None:
    """Kill the caller, its coordinator or a witness at a random instant; start the caller again until it is done.

    Each call has its key. In the end each has run once or, if its witness was killed, is Lost.
    """
    lab.let_go("go")
    killed_witness = False
    for _ in range(3):
        with start_caller(lab) as caller:
            time.sleep(chance.uniform(0.0, 1.5))
            match chance.choice(["caller", "coordinator", "witness"]):
                case "caller":
                    caller.kill()
                case "coordinator":
                    lab.kill()
                case "witness":
                    killed_witness = kill_a_witness(chance) or killed_witness
            caller.wait(DEADLINE_S)
    with aver.Executor(name="named") as executor:
        futures = [
            executor.submit(kit.note_and_wait, "ran", str(one), "go", aver={"key": f"call-{one}"})
            for one in range(CALLS)
        ]
        for one, future in enumerate(futures):
            error = future.exception(DEADLINE_S)
            assert error is None or (killed_witness and isinstance(error, aver.Lost)), error
            assert error is not None or future.result() == str(one)
    counts = Counter(lab.lines("ran"))
    assert all(count == 1 for count in counts.values()), counts


def kill_a_witness(chance: random.Random) -> bool:
    """One of this home's, if there is one."""
    own = os.fsencode(Home.find().witnesses) + b"/"
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(os.fsencode(f"/proc/{pid}/fd/4")).startswith(own):
                found.append(int(pid))
    if not found:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(sorted(found)), signal.SIGKILL)
    return True


def test_the_kit_is_importable_by_jobs() -> None:
    """Its folder is on the path that calls carry."""
    assert os.fspath(Path(kit.__file__).parent) in sys.path
