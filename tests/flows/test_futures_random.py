"""`aver.Executor` under deaths at random instants: each future settles with the true cause, nothing runs twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

import call_kit as kit
import pytest
from flow_lab import Lab

import aver
from aver.home import Home
from aver.model.states import State

DEADLINE_S = 120.0
CALLS = 3
KINDS = 6


@pytest.fixture
def here(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(lab.folder)
    return lab


@pytest.mark.parametrize("seed", range(10))
def test_random_deaths(here: Lab, seed: int) -> None:
    random_trial(here, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 200))
def test_more_random_deaths(here: Lab, seed: int) -> None:
    random_trial(here, seed)


def random_trial(lab: Lab, seed: int) -> None:
    """Half of the trials kill callers too; half of both kinds have warm executors."""
    chance = random.Random(seed)
    warm = ["call_kit"] if seed % 4 >= 2 else []
    if seed % 2 == 0:
        callers_die(lab, chance, warm)
    else:
        ends_are_true(lab, chance, warm)


def callers_die(lab: Lab, chance: random.Random, warm: list[str]) -> None:
    """Kill the caller, its coordinator, a witness or a server at random; start the caller again until it is done.

    Each call has its key. In the end each has run once or, if its witness was killed, is Lost.
    """
    lab.let_go("go")
    killed: set[str] = set()
    for _ in range(3):
        words = [sys.executable, kit.__file__, "named", "ran", "go", str(CALLS), " ".join(warm)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(words, cwd=lab.folder, stdout=quiet, stderr=quiet) as caller:
            time.sleep(chance.uniform(0.0, 1.5))
            victim = chance.choice(["caller", "coordinator", "witness", "server"])
            if victim == "caller":
                caller.kill()
            else:
                kill(lab, chance, victim, killed)
            caller.wait(DEADLINE_S)
    with aver.Executor(name="named", warm=warm) as executor:
        futures = [
            executor.submit(kit.note_and_wait, "ran", str(one), "go", aver={"key": f"call-{one}"})
            for one in range(CALLS)
        ]
        for one, future in enumerate(futures):
            error = future.exception(DEADLINE_S)
            assert error is None or ("witness" in killed and isinstance(error, aver.Lost)), error
            assert error is not None or future.result() == str(one)
    counts = Counter(lab.lines("ran"))
    assert all(count == 1 for count in counts.values()), counts


def ends_are_true(lab: Lab, chance: random.Random, warm: list[str]) -> None:
    """Calls that end in every way, some cancelled, while others of us die: each has its own end, or is Lost.

    Lost is only what a killed witness had.
    """
    killed: set[str] = set()
    is_over = threading.Event()

    def kill_some() -> None:
        for _ in range(chance.randint(1, 3)):
            if is_over.wait(chance.uniform(0.0, 2.0)):
                return
            kill(lab, chance, chance.choice(["coordinator", "witness", "server"]), killed)

    kinds = [chance.randrange(KINDS) for _ in range(8)]
    cancelled = {one for one in range(len(kinds)) if chance.random() < 0.15}
    killer = threading.Thread(target=kill_some)
    killer.start()
    try:
        with aver.Executor(warm=warm) as executor:
            futures = []
            for one, kind in enumerate(kinds):
                futures.append(_submit(executor, one, kind))
                if one in cancelled:
                    futures[-1].cancel()
            for one, future in enumerate(futures):
                _is_true(one, kinds[one], future, one in cancelled, killed)
    finally:
        is_over.set()
        killer.join()
    counts = Counter(lab.lines("ran"))
    assert all(count == 1 for count in counts.values()), counts


def _submit(executor: aver.Executor, one: int, kind: int) -> aver.Future[Any]:
    word = str(one)
    match kind:
        case 0:
            return executor.submit(kit.note, "ran", word)
        case 1:
            return executor.submit(kit.note_and_end, "ran", word, "raise")
        case 2:
            return executor.submit(kit.note_and_end, "ran", word, "kill")
        case 3:
            return executor.submit(kit.note_and_end, "ran", word, "exit")
        case 4:
            return executor.submit(kit.note_and_wait, "ran", word, "never", aver={"time": "1s"})
        case _:
            return executor.submit(kit.note_and_end, "ran", word, "memory", aver={"mem": "60M"})


def _is_true(one: int, kind: int, future: aver.Future[Any], is_cancelled: bool, killed: set[str]) -> None:
    """The future's end is that of its kind; or of a cancellation or a killed witness, where there was one."""
    try:
        error = future.exception(DEADLINE_S)
    except aver.Cancelled:
        assert is_cancelled, f"call {one} was cancelled by nobody"
        return
    if isinstance(error, aver.Lost):
        assert "witness" in killed, error
        assert error.verdict is not None
        assert error.verdict.state is State.UNVERIFIED
        return
    wanted = (type(None), ArithmeticError, aver.KilledBySignal, aver.Exited, aver.TimedOut, aver.OutOfMemory)[kind]
    assert type(error) is wanted, f"call {one}: {error!r}, not {wanted.__name__}"
    assert error is not None or future.result() == str(one)


def kill(lab: Lab, chance: random.Random, victim: str, killed: set[str]) -> None:
    """Kill the coordinator, a witness or a server of this home, if there is one, and say so in `killed`."""
    if victim == "coordinator":
        lab.kill()
        return
    found = kit.witnesses(Home.find()) if victim == "witness" else kit.servers(Home.find())
    if found:
        killed.add(victim)
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(found), signal.SIGKILL)
