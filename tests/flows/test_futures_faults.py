"""The fault table of `aver.Executor`: whatever dies, each future settles with the true cause; nothing runs twice."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import call_kit as kit
import pytest
from flow_lab import Lab

import aver
from aver.api.executor import pump as pump_module
from aver.errors import AverError, CantWriteError
from aver.home import Home
from aver.protocol.client import Client
from aver.store.read.reader import Reader

DEADLINE_S = 60.0
pump: Any = pump_module
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


def start_caller(lab: Lab, count: int = CALLS, dies_at: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, kit.__file__, "named", "ran", "go", str(count), "", dies_at],
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


def test_the_coordinator_is_killed_as_it_starts(here: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The submission is sent again, to the next one."""
    tries: list[str] = []
    submit_once = pump.submit_once

    def first_dies(*args: Any) -> Any:
        monkeypatch.setenv("AVER_CRASH_AT", "none" if tries else "recovered")
        tries.append("asked")
        return submit_once(*args)

    monkeypatch.setattr(pump, "submit_once", first_dies)
    with aver.Executor() as executor:
        assert executor.submit(kit.note, "ran", "1").result(DEADLINE_S) == "1"
    assert tries == ["asked", "asked"]
    assert here.lines("ran") == ["1"]


@pytest.mark.parametrize("instant", ["calls written", "answer lost"])
def test_the_caller_is_killed_while_it_submits(here: Lab, instant: str) -> None:
    """Before the request is sent, or when its answer is about to be read: submitted again, each call runs once."""
    with start_caller(here, dies_at=instant) as caller:
        assert caller.wait(DEADLINE_S) == -signal.SIGKILL
    here.let_go("go")
    assert len(aver.Executor(name="named").futures) == (instant == "answer lost")
    assert found_again(CALLS) == ["0", "1", "2"]
    assert Counter(here.lines("ran")) == Counter("012")


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_a_witness_is_killed_before_it_takes_its_order(here: Lab, warm: bool) -> None:
    """It was free, and stops as the call is submitted: the call runs once or is Lost, and the next one runs."""
    with aver.Executor(max_workers=1, warm=warm) as executor:
        assert executor.submit(kit.note, "ran", "first").result(DEADLINE_S) == "first"
        free = kit.witnesses(Home.find())
        for pid in free:
            os.kill(pid, signal.SIGSTOP)
        future = executor.submit(kit.note, "ran", "second")
        here.until(lambda: future.job is not None, "it is not submitted")
        for pid in free:
            os.kill(pid, signal.SIGKILL)
        error = future.exception(DEADLINE_S)
        assert error is None or type(error) is aver.Lost
        assert executor.submit(kit.note, "ran", "third").result(DEADLINE_S) == "third"
    counts = Counter(here.lines("ran"))
    assert counts == Counter(["first", "third"] + ["second"] * counts["second"])
    assert counts["second"] <= 1
    assert error is not None or counts["second"] == 1


def test_a_full_disk_while_calls_are_submitted(here: Lab) -> None:
    """The call can't be written: its future says so, and nothing is submitted. With room again the next one runs."""
    with aver.Executor() as executor:
        assert executor.submit(pow, 2, 2).result(DEADLINE_S) == 4
        with no_file_grows():
            error = executor.submit(kit.note, "ran", "1").exception(DEADLINE_S)
        assert isinstance(error, CantWriteError)
        assert executor.submit(pow, 2, 3).result(DEADLINE_S) == 8
    assert here.lines("ran") == []


def test_the_coordinators_disk_is_full_while_calls_are_submitted(here: Lab) -> None:
    """No event can be stored: the future says so or waits for room, nothing runs before its intent is durable."""
    with aver.Executor() as executor:
        assert executor.submit(pow, 2, 2).result(DEADLINE_S) == 4
        pid = Home.find().holder()["pid"]
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
        refused = executor.submit(kit.note, "ran", "1")
        try:
            error = refused.exception(DEADLINE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert isinstance(error, AverError)
        assert here.lines("ran") == []
        assert executor.submit(kit.note, "ran", "2").result(DEADLINE_S) == "2"
    assert here.lines("ran") == ["2"]


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


def test_the_kit_is_importable_by_jobs() -> None:
    """Its folder is on the path that calls carry."""
    assert os.fspath(Path(kit.__file__).parent) in sys.path
