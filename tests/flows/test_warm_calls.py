"""`aver.Executor(warm=…)`: calls are forked from a Python that has the imports, each with its own verdict."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import call_kit as kit
import pytest
from flow_lab import Lab

import aver
from aver.errors import UsageError

DEADLINE_S = 60.0


@pytest.fixture
def executor(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[aver.Executor]:
    monkeypatch.chdir(lab.folder)
    with aver.Executor(warm=["call_kit", "calendar"], max_workers=1) as executor:
        yield executor


def until(executor: aver.Executor, call: Callable[..., Any], is_good: Callable[[Any], bool]) -> Any:
    """The first result of the call that is good; the first calls run cold, while the server imports."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_good(found := executor.submit(call).result(DEADLINE_S)):
        assert time.monotonic() < deadline, found
    return found


def warm_call(executor: aver.Executor) -> kit.Place:
    return until(executor, kit.place, lambda place: place.is_forked)  # type: ignore[no-any-return]


def test_each_call_is_a_process_of_its_own_with_its_own_verdict(executor: aver.Executor, lab: Lab) -> None:
    """Children of the same witness, with the order's folder, environment, output and limits; ends are told as ever."""
    first = warm_call(executor)
    second = warm_call(executor)
    assert "calendar" in first.modules
    assert first.pid != second.pid
    assert (first.parent, first.session, second.session) == (second.parent, first.pid, second.pid)
    assert (first.folder, first.descriptors) == (os.fspath(lab.folder), second.descriptors)
    assert first.key != second.key
    future = executor.submit(kit.divide, 1, 0)
    assert isinstance(future.exception(DEADLINE_S), ZeroDivisionError)
    assert future.job is not None
    assert future.job.log().startswith("dividing\n")
    assert type(executor.submit(kit.kill_self).exception(DEADLINE_S)) is aver.KilledBySignal
    assert type(executor.submit(kit.exit_badly_after_result).exception(DEADLINE_S)) is aver.Exited
    late = executor.submit(time.sleep, 100, aver={"time": "1s"}).exception(DEADLINE_S)
    assert type(late) is aver.TimedOut
    waiting = executor.submit(kit.note_and_wait, "ran", "1", "never")
    lab.until(lambda: lab.lines("ran") == ["1"], "it does not run")
    assert waiting.cancel()
    with pytest.raises(aver.Cancelled):
        waiting.result(DEADLINE_S)
    child = executor.submit(kit.leave_a_child).result(DEADLINE_S)
    lab.until(lambda: not os.path.exists(f"/proc/{child}"), "what the call left is there")
    assert warm_call(executor).parent == first.parent


def test_a_long_environment_comes_through_whole(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than what the witness writes at once, as a whole and in one value."""
    monkeypatch.chdir(lab.folder)
    long = {f"LONG_{number}": "x" * size for number, size in enumerate([100] * 200 + [8191, 8192, 50_000, 1])}
    with aver.Executor(warm=["call_kit"], max_workers=1, env=long) as executor:
        warm_call(executor)
        found = until(executor, kit.environment, lambda found: found.is_forked)
    assert {name: found.values[name] for name in long} == long


def test_memory_is_that_of_the_call_alone(executor: aver.Executor) -> None:
    warm_call(executor)
    assert type(executor.submit(kit.take_memory, 300, aver={"mem": "60M"}).exception(DEADLINE_S)) is aver.OutOfMemory
    assert executor.submit(kit.add, 1, 2).result(DEADLINE_S) == 3


def test_a_server_that_is_killed_hurts_no_call(executor: aver.Executor, lab: Lab) -> None:
    """One that runs goes on; the next ones are forked by another server."""
    server = warm_call(executor).server
    future = executor.submit(kit.note_and_wait, "ran", "1", "go")
    lab.until(lambda: lab.lines("ran") == ["1"], "it does not run")
    os.kill(server, signal.SIGKILL)
    lab.let_go("go")
    assert future.result(DEADLINE_S) == "1"
    assert warm_call(executor).server != server


def test_a_witness_that_is_killed_takes_its_server_along(executor: aver.Executor, lab: Lab) -> None:
    place = warm_call(executor)
    future = executor.submit(kit.note_and_wait, "ran", "1", "go")
    lab.until(lambda: lab.lines("ran") == ["1"], "it does not run")
    os.kill(place.parent, signal.SIGKILL)
    assert type(future.exception(DEADLINE_S)) is aver.Lost
    lab.until(lambda: not is_alive(place.server), "the server is there")
    lab.let_go("go")
    assert executor.submit(kit.add, 1, 2).result(DEADLINE_S) == 3


def test_what_cant_be_imported_is_the_calls_to_say(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other calls do not need it. What is no list of modules is refused."""
    monkeypatch.chdir(lab.folder)
    with aver.Executor(warm=["no_such_module_anywhere"], max_workers=1) as executor:
        assert warm_call(executor).is_forked
        with pytest.raises(UsageError, match="list of modules"):
            executor.submit(kit.place, aver={"warm": "numpy"})


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
