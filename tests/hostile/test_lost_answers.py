"""A submission whose answer is lost: the client finds out whether it was taken, and says so."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from aver.model.states import State
from live_home import DEADLINE_S, LiveHome

Typed = Callable[..., subprocess.CompletedProcess[bytes]]
NOTE = ("--", "sh", "-c", 'echo $AVER_KEY >> "$RAN"')


@contextlib.contextmanager
def crashing(live: LiveHome, monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    """A coordinator that dies at this point; the next one does not."""
    monkeypatch.setenv("AVER_CRASH_AT", point)
    monkeypatch.setenv("RAN", str(live.ran))
    with live.client():
        monkeypatch.delenv("AVER_CRASH_AT")
        pid = live.coordinator()
        yield
    assert live.coordinator() != pid


def assert_one_run(live: LiveHome, run: int) -> None:
    live.settle([run])
    with live.reader() as reader:
        assert reader.run_numbers() == {run}
    assert live.job(run).state is State.COMPLETED
    assert sorted(live.keys_run().values()) == [1]


@pytest.mark.parametrize("point", ["submit-files-written", "before-commit", "committed", "acted"])
def test_coordinator_dies_in_the_middle(
    live: LiveHome, typed: Typed, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Durable or not, when it is asked again there is one run, and its number is said."""
    with crashing(live, monkeypatch, point):
        done = typed("submit", *NOTE)
    assert done.returncode == 0, done.stderr
    assert_one_run(live, int(done.stdout))


@pytest.mark.parametrize("point", ["before-commit", "committed"])
def test_sbatch_whose_coordinator_dies(live: LiveHome, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """The same for sbatch."""
    with crashing(live, monkeypatch, point):
        command = [live.home.bin / "sbatch", "--parsable", "--wrap", 'echo $AVER_KEY >> "$RAN"']
        done = subprocess.run(command, cwd=live.folder, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert_one_run(live, int(done.stdout))


def test_same_key_is_the_same_run(live: LiveHome, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Submitted again with the same key it is the same run, also after a crash; something else is refused."""
    monkeypatch.setenv("RAN", str(live.ran))
    first = typed("submit", "--key", "nightly 7", *NOTE)
    assert typed("submit", "--key", "nightly 7", *NOTE).stdout == first.stdout != b""
    live.kill_coordinator()
    assert typed("submit", "--key", "nightly 7", *NOTE).stdout == first.stdout
    other = typed("submit", "--key", "nightly 7", "--", "true")
    assert other.returncode == 2
    assert b"nightly 7" in other.stderr
    assert_one_run(live, int(first.stdout))
    assert typed("run", "--key", "nightly 7", *NOTE).returncode == 0
    assert_one_run(live, int(first.stdout))


def test_two_with_one_key_at_once(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both get the number of the one run, before and after it is durable."""
    monkeypatch.setenv("RAN", str(live.ran))
    live.connect_again()
    command = [sys.executable, "-m", "aver", "submit", "--key", "k", *NOTE]
    both = [subprocess.Popen(command, cwd=live.folder, stdout=subprocess.PIPE) for _ in range(4)]
    numbers = {one.communicate(timeout=DEADLINE_S)[0] for one in both}
    assert len(numbers) == 1
    assert_one_run(live, int(numbers.pop()))


def test_a_key_that_cant_be_compared(live: LiveHome, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the home's own key nobody knows whether the content is the same: it is refused, and nothing runs."""
    monkeypatch.setenv("RAN", str(live.ran))
    assert typed("run", "--key", "k", *NOTE).returncode == 0
    live.kill_coordinator()
    (live.home.path / "env" / "key").write_bytes(b"x")
    other = typed("submit", "--key", "k", "--", "true")
    assert (other.returncode, other.stdout) == (2, b"")
    assert b"can't be compared" in other.stderr
    assert sorted(live.keys_run().values()) == [1]
