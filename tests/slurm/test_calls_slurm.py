"""`aver.Executor(engine="slurm")` on a real Slurm: results, exceptions and ends as on this machine."""

from __future__ import annotations

import os
import signal
import time

import pytest
from fault_desk import ClusterHome

import aver
from aver.model.states import State
from live_home import wait_for

DEADLINE_S = 120.0


def test_calls_on_a_cluster(whole_cluster: ClusterHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is a job of Slurm's; futures are needs; one that is killed hurts no other, and is found again."""
    monkeypatch.setenv("SLURM_CONF", whole_cluster.lab.environment["SLURM_CONF"])
    monkeypatch.chdir(whole_cluster.folder)
    with aver.Executor(name="cluster", engine="slurm", time="5m") as executor:
        first = executor.submit(pow, 2, 5)
        second = executor.submit(sum, [first, 10])
        bad = executor.submit(divmod, 1, 0)
        killed = executor.submit(os.kill, 0, signal.SIGKILL)
        below = executor.submit(sum, [killed])
        assert second.result(DEADLINE_S) == 42
        assert type(bad.exception(DEADLINE_S)) is ZeroDivisionError
        assert isinstance(killed.exception(DEADLINE_S), aver.KilledBySignal)
        assert isinstance(below.exception(DEADLINE_S), aver.DependencyFailed)
        later = executor.submit(sum, [second, 1])
        assert whole_cluster.kill_coordinator()
        assert later.result(DEADLINE_S) == 43
        assert later.attempts[0].engine == "slurm"
    found = aver.Executor(name="cluster").futures
    assert [future.result(DEADLINE_S) for future in (found[0], found[1], found[-1])] == [32, 42, 43]
    assert found[0].job is not None
    assert found[0].job.state is State.COMPLETED


def test_ends_of_calls_on_a_cluster(whole_cluster: ClusterHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory, out of time, cancelled while it runs, a warm executor, a key: as on this machine."""
    monkeypatch.setenv("SLURM_CONF", whole_cluster.lab.environment["SLURM_CONF"])
    monkeypatch.chdir(whole_cluster.folder)
    with aver.Executor(name="ends", engine="slurm", time="5m", warm=["json"]) as executor:
        memory = executor.submit(_take_and_sleep, 300 << 20, aver={"mem": "60M"})
        late = executor.submit(time.sleep, 600, aver={"time": "2s"})
        slow = executor.submit(time.sleep, 600)
        kept = executor.submit(pow, 2, 7, aver={"key": "power"})
        assert isinstance(memory.exception(DEADLINE_S), aver.OutOfMemory)
        assert isinstance(late.exception(DEADLINE_S), aver.TimedOut)
        assert kept.result(DEADLINE_S) == 128
        wait_for(slow.running, "the call runs")
        assert slow.cancel()
        with pytest.raises(aver.Cancelled):
            slow.result(DEADLINE_S)
        again = executor.submit(pow, 2, 7, aver={"key": "power"})
        assert again.result(DEADLINE_S) == 128
        assert again.job is not None
        assert kept.job is not None
        assert again.job.number == kept.job.number


def _take_and_sleep(size: int) -> int:
    taken = bytearray(size)
    time.sleep(60)
    return len(taken)
