"""Pools, parts of CPUs and what jobs run in, on a real Slurm: as on this machine, also after `kill -9`."""

from __future__ import annotations

import venv

import pytest
from fault_desk import ClusterHome, job

from aver.model.job import Matrix, Request, Setup
from aver.protocol.messages import Done, PoolSize
from live_home import wait_for


@pytest.fixture
def cluster(whole_cluster: ClusterHome) -> ClusterHome:
    """Nothing here breaks the lab."""
    return whole_cluster


def test_a_pool_bounds_jobs_on_a_cluster(cluster: ClusterHome) -> None:
    """One at a time is handed to Slurm, whoever drives them; the others wait here with the reason."""
    with cluster.client() as client:
        client.ask(PoolSize("licence", 1, "me"), Done)
    text = f"touch {cluster.folder}/begun-{{n}}; until test -e {cluster.folder}/go; do sleep 0.1; done"
    run = cluster.submit(job("a", text, matrix=Matrix((("n", ("1", "2", "3")),)), pools=(("licence", 1),)))
    wait_for(lambda: list(cluster.folder.glob("begun-*")), "one has begun", 120)
    assert cluster.kill_coordinator()
    wait_for(lambda: _waits_for_a_pool(cluster, run), "one waits for the pool", 120)
    assert len(list(cluster.folder.glob("begun-*"))) == 1
    (cluster.folder / "go").touch()
    cluster.settle([run], 120)
    assert set(cluster.states(run).values()) == {"COMPLETED"}


def _waits_for_a_pool(cluster: ClusterHome, run: int) -> bool:
    cluster.connect_again()
    with cluster.reader() as reader:
        return any(row.reason == "Licenses" for row in reader.jobs(run))


def test_parts_of_cpus_and_a_venv(cluster: ClusterHome) -> None:
    """Slurm gives whole CPUs; the job runs in its venv, and its exit code is its own."""
    folder = cluster.folder / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    text = f'echo "$VIRTUAL_ENV $SLURM_CPUS_PER_TASK $AVER_CPUS" > {cluster.folder}/said; command -v python; exit 7'
    run = cluster.submit(job("a", text, request=Request(cpus=0.25, time_s=120), setup=Setup(venv=str(folder))))
    cluster.settle([run], 120)
    assert (cluster.folder / "said").read_text() == f"{folder} 1 0.25\n"
    assert cluster.states(run) == {"a": "FAILED"}
