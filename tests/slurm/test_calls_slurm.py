"""`aver.Executor(engine="slurm")` on a real Slurm: results, exceptions and ends as on this machine."""

from __future__ import annotations

import os
import signal

import pytest
from fault_desk import ClusterHome

import aver
from aver.model.states import State

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
