"""A submission whose answer is lost: the client finds out whether it was taken, and says so."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from aver.client.submit import submit_once
from aver.model.job import FlowSpec
from aver.model.record import replace
from aver.model.states import State
from aver.protocol.messages import Submit, request_document
from live_home import DEADLINE_S, LiveHome, shell_job

Typed = Callable[..., subprocess.CompletedProcess[bytes]]
NOTE = ("--", "sh", "-c", 'echo $AVER_KEY >> "$RAN"')
NOTED = shell_job("sh", 'echo $AVER_KEY >> "$RAN"')


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
        assert [row.id for row in reader.runs()] == [run]
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


def test_sbatch_whose_next_coordinators_die_too(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody lives long enough to answer: sbatch finds its job in the store, and does not say that it failed."""
    with crashing(live, monkeypatch, "committed"):
        command = [live.home.bin / "sbatch", "--parsable", "--wrap", 'echo $AVER_KEY >> "$RAN"']
        dying = {**os.environ, "AVER_CRASH_AT": "recovered"}
        done = subprocess.run(command, cwd=live.folder, env=dying, capture_output=True, timeout=DEADLINE_S, check=False)
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


def test_sbatch_has_keys_too(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same key and content is the same job, also after a crash; something else, and what is no key, is refused."""
    monkeypatch.setenv("RAN", str(live.ran))
    live.connect_again()

    def sbatch(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(live.home.bin / "sbatch"), *words, "--parsable", "--wrap", 'echo $AVER_KEY >> "$RAN"']
        return subprocess.run(command, cwd=live.folder, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    first = sbatch("--key", "nightly 7")
    assert first.returncode == 0, first.stderr
    assert sbatch("--key=nightly 7").stdout == first.stdout
    live.kill_coordinator()
    assert sbatch("--key=nightly 7").stdout == first.stdout
    other = sbatch("--key=nightly 7", "--time=7")
    assert (other.returncode != 0, other.stdout) == (True, "")
    assert "nightly 7" in other.stderr
    assert "a key has 1 to" in sbatch("--key=").stderr
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


def submit_and_lose(live: LiveHome, chance: random.Random, key: str) -> None:
    """Submit with a key, and go away at a random moment: within the request, after it, or killed as a command."""
    if chance.random() < 0.1:
        command = [sys.executable, "-m", "aver", "submit", "--key", key, *NOTE]
        with subprocess.Popen(command, cwd=live.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(chance.uniform(0.0, 0.6))
            client.kill()
        return
    submission = replace(live.submission(FlowSpec("sh", (NOTED,), is_single=True)), key=f"raw {key}")
    request = Submit(submission, tuple(live.environment()), is_again=True)
    line = json.dumps(request_document(request)).encode() + b"\n"
    with live.client() as client:
        sent = len(line) if chance.random() < 0.7 else chance.randrange(len(line))
        client._connection.sendall(line[:sent])
        if sent == len(line) and chance.random() < 0.7:
            select.select([client], [], [], DEADLINE_S)  # the answer is there, and nobody reads it


def submitted_once(live: LiveHome, seed: int, count: int) -> None:
    """However often it is lost and repeated: each key has one run, which ran once."""
    chance = random.Random(seed)
    keys = [f"{seed}-{number}" for number in range(count)]
    for key in keys:
        for _ in range(chance.randint(0, 3)):
            submit_and_lose(live, chance, key)
            if chance.random() < 0.05:
                live.kill_coordinator()
    runs = set()
    for key in keys:
        submission = replace(live.submission(FlowSpec("sh", (NOTED,), is_single=True)), key=f"raw {key}")
        runs.add(submit_once(live.home, submission, live.environment()).run)
    assert len(runs) == count
    live.settle(sorted(runs))
    with live.reader() as reader:
        stored = Counter(run.key for run in reader.runs())
        unsettled = reader.unsettled_runs()
    assert {key for key in stored if key is not None and key.startswith("raw ")} == {f"raw {key}" for key in keys}
    assert set(stored.values()) == {1}
    live.settle(unsettled)
    ran = live.keys_run()
    assert set(ran.values()) == {1}
    assert len(ran) == len(stored)


def test_lost_answers_make_no_second_run(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAN", str(live.ran))
    submitted_once(live, 1, 50)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 21))
def test_many_lost_answers_make_no_second_run(live: LiveHome, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setenv("RAN", str(live.ran))
    submitted_once(live, seed, 50)
