"""`aver.Executor`: calls are jobs, and futures say what their verdicts say."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import call_kit as kit
import pytest
from flow_lab import Lab

import aver
from aver.errors import UsageError
from aver.model.states import State

DEADLINE_S = 60.0


@pytest.fixture
def executor(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[aver.Executor]:
    monkeypatch.chdir(lab.folder)
    made = aver.Executor()
    yield made
    made.shutdown(cancel_futures=True)


def raised(future: aver.Future[Any]) -> Any:
    error = future.exception(DEADLINE_S)
    assert error is not None
    return error


def test_results_and_exceptions(executor: aver.Executor) -> None:
    """A result; the function's own exception with its traceback; one that can't be unpickled is told by its text."""
    good, bad, odd = executor.submit(pow, 2, 10), executor.submit(kit.divide, 1, 0), executor.submit(kit.raise_odd)
    assert good.result(DEADLINE_S) == 1024
    assert good.job is not None
    assert good.job.state is State.COMPLETED
    error = raised(bad)
    assert type(error) is ZeroDivisionError
    assert isinstance(error.__cause__, aver.RemoteTraceback)
    assert "in divide" in str(error.__cause__)
    assert bad.job is not None
    assert bad.job.log().startswith("dividing\n")
    told = raised(odd)
    assert type(told) is aver.Exited
    assert "OddError: 1" in str(told)
    assert "in raise_odd" in str(told.__cause__)
    assert told.verdict.state is State.FAILED


def test_functions_of_main_and_lambdas(lab: Lab) -> None:
    """A script's own functions and classes go by value, its results come back as its own classes."""
    script = lab.write(
        """
import aver
class Point:
    def __init__(self, x): self.x = x
def move(point, by): return Point(point.x + by)
if __name__ == "__main__":
    with aver.Executor() as executor:
        found = executor.submit(move, Point(1), 2).result()
        assert type(found) is Point and found.x == 3
        print(executor.submit(lambda: found.x + 1).result())
""",
        "script.py",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("4\n", "")


def test_without_cloudpickle(lab: Lab) -> None:
    """Functions of modules work; one of `__main__` is refused at once, with what to install."""
    script = lab.write(
        """
import sys
sys.modules["cloudpickle"] = None
import aver
def own(): return 1
with aver.Executor() as executor:
    print(executor.submit(pow, 2, 3).result())
    executor.submit(own)
""",
        "script.py",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "8\n")
    assert "pip install 'aver[executor]'" in done.stderr.splitlines()[-1]


def test_futures_are_arguments(executor: aver.Executor) -> None:
    """Alone, inside lists and dicts, of the same batch and of an earlier one; a bad one is DependencyFailed."""
    first = executor.submit(kit.add, 1, 2)
    same = executor.submit(kit.add, first, 10)
    assert same.result(DEADLINE_S) == 13
    later = executor.submit(kit.deep, {"a": [first, 5], "b": [same]})
    assert later.result(DEADLINE_S) == [3, 5, 13]
    bad = executor.submit(kit.kill_self)
    below = executor.submit(kit.add, bad)
    assert type(raised(bad)) is aver.KilledBySignal
    assert type(raised(below)) is aver.DependencyFailed
    after = executor.submit(kit.add, bad)
    assert type(raised(after)) is aver.DependencyFailed
    assert executor.submit(kit.add, first).result(DEADLINE_S) == 3


def test_each_end_has_its_exception(executor: aver.Executor) -> None:
    """Out of memory, time, killed, exits, a missing result, results that can't be pickled or unpickled."""
    memory = executor.submit(kit.take_memory, 300, aver={"mem": "60M"})
    late = executor.submit(kit.note_and_wait, "late", "late", "never", aver={"time": "1s"})
    killed = executor.submit(kit.kill_self, signal.SIGSEGV)
    silent, status = executor.submit(os._exit, 0), executor.submit(os._exit, 3)
    generator, unreadable = executor.submit(kit.generator), executor.submit(kit.UnreadableHere)
    error = raised(memory)
    assert isinstance(error, aver.OutOfMemory)
    assert isinstance(error, MemoryError)
    assert isinstance(raised(late), aver.TimedOut)
    assert isinstance(raised(late), TimeoutError)
    assert isinstance(raised(killed), aver.KilledBySignal)
    assert raised(killed).verdict.exit.signal == signal.SIGSEGV
    assert "SIGSEGV" in raised(killed).why
    assert raised(killed).job.number == killed.job.number  # type: ignore[union-attr]
    assert (type(raised(silent)), raised(silent).verdict.state) == (aver.Exited, State.COMPLETED)
    assert "left no result" in str(raised(silent))
    assert (type(raised(status)), raised(status).verdict.exit.code) == (aver.Exited, 3)
    assert type(raised(generator)) is aver.UnusableResult
    assert "can't be pickled" in str(raised(generator))
    assert "can't be pickled" in raised(generator).log_tail
    assert type(raised(unreadable)) is aver.UnusableResult
    assert "can't be unpickled" in str(raised(unreadable))


def test_a_result_without_its_verdict_is_not_shown(executor: aver.Executor) -> None:
    """The function returned and its result is on disk, but the program did not exit with 0."""
    future = executor.submit(kit.exit_badly_after_result)
    assert type(raised(future)) is aver.Exited
    assert raised(future).verdict.exit.code == 9
    folder, call = future._reference
    assert Path(folder, f"{call}.1").exists()


def test_options_retries_and_attempts(executor: aver.Executor) -> None:
    """Of a view, of a call; what is tried again grows, and each attempt is kept."""
    view = executor.options(mem="60M", retry={"max": 2, "on": ["OUT_OF_MEMORY"], "grow": {"mem": "6x"}})
    grown = view.submit(kit.take_memory_once, 150, aver={"name": "grown"})
    assert grown.result(DEADLINE_S) == 150 << 20
    assert [(one.state, one.reason, one.request.mem_bytes) for one in grown.attempts] == [
        (State.OUT_OF_MEMORY, "OutOfMemory", 60 << 20),
        (State.COMPLETED, None, 360 << 20),
    ]
    assert grown.job is not None
    assert grown.job.name == "grown"
    again = executor.submit(kit.fail_until, 3, aver={"retry": {"max": 3, "on": ["exit:75"]}})
    assert again.result(DEADLINE_S) == 3
    with pytest.raises(UsageError, match="much"):
        executor.submit(pow, 1, 1, aver={"mem": "much"})
    with pytest.raises(UsageError, match="colour"):
        executor.options(colour="red").submit(pow, 1, 1)


def test_one_wrong_call_does_not_hurt_the_others(executor: aver.Executor) -> None:
    """What this machine can never give is refused; what was submitted with it runs."""
    futures = [executor.submit(pow, 2, 3), executor.submit(pow, 2, 4, aver={"gpus": 99}), executor.submit(pow, 2, 5)]
    assert [futures[0].result(DEADLINE_S), futures[2].result(DEADLINE_S)] == [8, 32]
    assert isinstance(raised(futures[1]), UsageError)


def test_cancel_running_and_pending(executor: aver.Executor, lab: Lab) -> None:
    """A running job ends; cancelled() is true once the verdict says so; what needs it is DependencyFailed."""
    future = executor.submit(kit.note_and_wait, "begun", "1", "never")
    below = executor.submit(kit.add, future)
    lab.wait_for("begun")
    assert future.cancel()
    with pytest.raises(aver.Cancelled) as caught:
        future.result(DEADLINE_S)
    assert isinstance(caught.value, concurrent.futures.CancelledError)
    assert caught.value.verdict is not None
    assert caught.value.verdict.state is State.CANCELLED
    assert future.cancelled()
    assert future.cancel()
    assert type(raised(below)) is aver.DependencyFailed
    done = executor.submit(pow, 1, 1)
    done.result(DEADLINE_S)
    assert not done.cancel()


def test_cancelled_from_the_command_line(executor: aver.Executor, lab: Lab) -> None:
    """Whoever cancels it: the future is cancelled."""
    future = executor.submit(kit.note_and_wait, "begun", "1", "never")
    lab.wait_for("begun")
    assert future.job is not None
    assert lab("cancel", str(future.job.number)).status == 0
    with pytest.raises(concurrent.futures.CancelledError):
        future.exception(DEADLINE_S)


def test_many_calls_are_few_runs(executor: aver.Executor, lab: Lab) -> None:
    """What is submitted within milliseconds is one run; max_workers holds calls back."""
    assert list(executor.map(pow, [2] * 40, range(40))) == [2**number for number in range(40)]
    runs = lab("runs", "--json").document["runs"]
    assert sum(run["jobs"] for run in runs) == 40
    assert len(runs) < 20
    assert list(executor.map(pow, [2] * 10, range(10), chunksize=4)) == [2**number for number in range(10)]
    with aver.Executor(max_workers=1) as narrow:
        first = narrow.submit(kit.note_and_wait, "ran", "1", "go")
        second = narrow.submit(kit.note, "ran", "2")
        lab.wait_for("ran")
        assert second.job is None
        lab.let_go("go")
        assert (first.result(DEADLINE_S), second.result(DEADLINE_S)) == ("1", "2")


def test_a_named_executor_finds_its_calls_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settled and running ones, with results; others' are not its own, and are not cancelled by Ctrl-C."""
    monkeypatch.chdir(lab.folder)
    with aver.Executor(name="sweep") as before, aver.Executor(name="sweep-2") as other:
        assert before.submit(pow, 3, 2).result(DEADLINE_S) == 9
        other.submit(pow, 3, 3).result(DEADLINE_S)
        running = before.submit(kit.note_and_wait, "begun", "1", "go", aver={"name": "slow"})
        lab.wait_for("begun")
        again = aver.Executor(name="sweep")
        found = again.futures
        assert [future.name for future in found] == ["pow-1", "slow"]
        assert found[0].result(DEADLINE_S) == 9
        mine = again.submit(kit.note_and_wait, "mine", "1", "never")
        lab.wait_for("mine")
        with pytest.raises(KeyboardInterrupt), again:
            raise KeyboardInterrupt
        assert mine.cancelled()
        assert not found[1].done()
        lab.let_go("go")
        assert found[1].result(DEADLINE_S) == "1"
        assert running.result(DEADLINE_S) == "1"
    assert [future.name for future in again.futures] == ["pow-1", "slow", "note_and_wait-1"]


def test_the_same_key_is_the_same_call(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process and in another executor; another call with the key is refused, and nothing is run for it."""
    monkeypatch.chdir(lab.folder)
    with aver.Executor(name="keys") as executor:
        view = executor.options(key="first")
        futures = [view.submit(kit.note, "ran", "1") for _ in range(3)]
        assert [future.result(DEADLINE_S) for future in futures] == ["1"] * 3
        refused = view.submit(kit.note, "ran", "2")
        assert "'first'" in str(raised(refused))
    with aver.Executor(name="keys") as later:
        assert later.submit(kit.note, "ran", "1", aver={"key": "first"}).result(DEADLINE_S) == "1"
        assert later.futures[0].key == "first"
    with aver.Executor() as unnamed:
        assert unnamed.submit(kit.note, "ran", "1", aver={"key": "first"}).result(DEADLINE_S) == "1"
    assert lab.lines("ran") == ["1", "1"]


def test_shutdown(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call after it; pending ones are cancelled if that is wanted; without waiting jobs go on."""
    monkeypatch.chdir(lab.folder)
    executor = aver.Executor(max_workers=1)
    running = executor.submit(kit.note_and_wait, "begun", "1", "go")
    waiting = executor.submit(kit.add, 1)
    lab.until(running.running, "it does not run")
    executor.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(RuntimeError):
        executor.submit(pow, 1, 1)
    assert waiting.cancelled()
    assert not running.done()
    lab.let_go("go")
    executor.shutdown()
    assert running.result(0) == "1"


def test_what_was_submitted_is_submitted_when_the_process_ends(lab: Lab) -> None:
    """Also if nobody holds the executor and its future any more."""
    script = lab.write("import aver\naver.Executor(name='dropped').submit(pow, 2, 3)\n", "script.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [future.result(DEADLINE_S) for future in aver.Executor(name="dropped").futures] == [8]


def test_callbacks_may_submit_and_cancel(executor: aver.Executor) -> None:
    """They run in the executor's thread, which goes on."""
    stuck = executor.submit(kit.note_and_wait, "stuck", "1", "never")
    followed: list[aver.Future[int]] = []
    is_called = threading.Event()

    def next_one(_: object) -> None:
        stuck.cancel()
        followed.append(executor.submit(pow, 2, 3))
        is_called.set()

    executor.submit(pow, 2, 2).add_done_callback(next_one)
    assert is_called.wait(DEADLINE_S)
    assert followed[0].result(DEADLINE_S) == 8
    with pytest.raises(aver.Cancelled):
        stuck.result(DEADLINE_S)


def test_asyncio_and_waits(executor: aver.Executor) -> None:
    """wrap_future, wait and as_completed."""

    async def story() -> list[int]:
        return list(await asyncio.gather(*(asyncio.wrap_future(executor.submit(pow, 2, one)) for one in range(3))))

    assert asyncio.run(story()) == [1, 2, 4]
    futures = [executor.submit(pow, 3, one) for one in range(3)]
    assert {future.result() for future in concurrent.futures.as_completed(futures, DEADLINE_S)} == {1, 3, 9}
    bad = executor.submit(kit.divide, 1, 0)
    done = concurrent.futures.wait([bad], DEADLINE_S, concurrent.futures.FIRST_EXCEPTION).done
    assert done == {bad}


def test_large_arguments_and_results(executor: aver.Executor) -> None:
    """They go by file."""
    assert len(executor.submit(kit.large, 3_000_000).result(DEADLINE_S)) == 3_000_000
    assert executor.submit(len, b"x" * 3_000_000).result(DEADLINE_S) == 3_000_000


def test_what_cant_be_pickled_is_said_at_once(executor: aver.Executor) -> None:
    with pytest.raises(TypeError, match="pickle"):
        executor.submit(len, [threading.Lock()])


def test_repr_says_states(executor: aver.Executor) -> None:
    """Of a future, of the executor, and as a table for notebooks."""
    done, bad = executor.submit(pow, 1, 1, aver={"name": "a<b"}), executor.submit(kit.divide, 1, 0)
    concurrent.futures.wait([done, bad], DEADLINE_S)
    assert done.job is not None
    assert repr(done) == f"<Future a_b (job {done.job.number}): returned>"
    counts = repr(executor).rstrip(">").rpartition(": ")[2].split(", ")
    assert sorted(counts) == ["1 raised ZeroDivisionError", "1 returned"]  # whichever came first
    assert f"<td>{done.job.number}</td><td>a_b</td><td>returned</td>" in executor._repr_html_()
