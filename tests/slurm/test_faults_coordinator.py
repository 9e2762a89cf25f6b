"""The coordinator killed at every named point, with flows of earlier deaths still on the way."""

from __future__ import annotations

import contextlib
import os

import pytest
from fault_desk import OK, SEVEN, ClusterHome, job

from aver.crashpoint import POINTS, SLURM_POINTS
from aver.errors import AverError
from aver.model.job import Matrix, Need, Needs
from aver.model.states import State
from live_home import wait_for

STARTING = ("attached", "recovered")
ELSEWHERE = ("submit-files-written", "generated-asked", "generated-read", "generated-added", "notifying")
# Points of ELSEWHERE know no engine: tests/crash has them.
HERE = [point for point in (*SLURM_POINTS, *POINTS) if point not in ELSEWHERE]
EXPECTED = {
    "good": (State.COMPLETED, OK),
    "bad": (State.FAILED, SEVEN),
    "many[n=0]": (State.COMPLETED, OK),
    "many[n=7]": (State.FAILED, SEVEN),
    "after": (State.COMPLETED, OK),
    "never": (State.SKIPPED, None),
}


@pytest.fixture
def cluster(whole_cluster: ClusterHome) -> ClusterHome:
    """Nothing here breaks the lab."""
    return whole_cluster


def _submit(cluster: ClusterHome) -> int:
    return cluster.submit(
        job("good", "exit 0"),
        job("bad", "exit 7"),
        job("many", "exit {n}", matrix=Matrix((("n", ("0", "7")),))),
        job("after", "exit 0", needs=Needs((Need("good"),))),
        job("never", "exit 0", needs=Needs((Need("bad"),))),
    )


def _die_at(cluster: ClusterHome, point: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a coordinator that dies there, give it work, and wait until it is dead."""
    cluster.kill_coordinator()
    before = len(cluster.log())
    monkeypatch.setenv("AVER_CRASH_AT", f"{point}:{count}")
    with contextlib.suppress(AverError, TimeoutError):
        _submit(cluster)
    if point not in STARTING:
        pid = cluster.coordinator()
        wait_for(lambda: pid is None or cluster.coordinator() != pid, f"the death at {point}")
    assert "idle: leaving" not in cluster.log()[before:], f"{point} was never reached"
    monkeypatch.delenv("AVER_CRASH_AT")


def _check(cluster: ClusterHome) -> None:
    cluster.connect_again()
    with cluster.reader() as reader:
        runs = [run.id for run in reader.runs()]
    runs = runs or [_submit(cluster)]  # its coordinator died before it was acknowledged
    cluster.settle(runs, 120)
    for run in runs:
        cluster.check(run, EXPECTED)
    assert len(cluster.keys_run()) == 5 * len(runs)
    cluster.wait_until_gone()
    assert os.listdir(cluster.home.path / "slurm" / "batches") == []


def test_deaths_at_all_named_points_in_a_row(cluster: ClusterHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every job has its one right verdict, and none was submitted or run twice, whenever its coordinators died."""
    for point in HERE:
        _die_at(cluster, point, 1, monkeypatch)
    _submit(cluster)
    _check(cluster)


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("point", [point for point in HERE if point not in STARTING])
def test_death_at_a_named_point(cluster: ClusterHome, point: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, one death at a time."""
    _die_at(cluster, point, count, monkeypatch)
    _check(cluster)
