"""Inputs and outputs of jobs on a real Slurm: the node's witness looks, also while nobody listens."""

from __future__ import annotations

import pytest
from allocation_desk import SMALL, submit_in
from fault_desk import OK, ClusterHome, job

from aver.model.job import Matrix
from aver.model.states import State
from live_home import wait_for


@pytest.fixture
def cluster(whole_cluster: ClusterHome) -> ClusterHome:
    """Nothing here breaks the lab."""
    return whole_cluster


def test_outputs_of_steps_in_an_allocation(cluster: ClusterHome) -> None:
    """A step of an allocation has a witness as well."""
    here = str(cluster.folder)
    jobs = [
        job("good", f"touch {here}/new", outputs=(f"{here}/new",)),
        job("bad", "exit 0", outputs=(f"{here}/none",)),
        job("noinput", f"touch {here}/touched", inputs=(f"{here}/none/*",)),
    ]
    run = submit_in(cluster, jobs, SMALL)
    cluster.settle([run], 180)
    with cluster.reader() as reader:
        found = {one.name: (one.state, one.reason) for one in reader.jobs(run=run)}
    assert found == {
        "good": (State.COMPLETED, "None"),
        "bad": (State.FAILED, "MissingOutput"),
        "noinput": (State.FAILED, "MissingInput"),
    }
    assert not (cluster.folder / "touched").exists()


def test_outputs_on_nodes_after_a_kill(cluster: ClusterHome) -> None:
    """Missing, from before, written, removed, and inputs that match nothing."""
    here = str(cluster.folder)
    (cluster.folder / "old").write_text("old")
    go = f"touch {here}/begun; until test -e {here}/go; do sleep 0.1; done; "
    run = cluster.submit(
        job("good", f"{go} touch {here}/new", outputs=(f"{here}/new",)),
        job("old", "exit 0", outputs=(f"{here}/old",)),
        job("bad", "test {s} = a && touch " + here + "/{s}.csv || true", outputs=(here + "/{s}.c*",),
            matrix=Matrix((("s", ("a", "b")),))),
        job("clean", f"touch {here}/gone; exit 7", outputs=(f"{here}/gone",), clean=True),
        job("noinput", f"touch {here}/touched", inputs=(f"{here}/none/*",)),
    )  # fmt: skip
    wait_for((cluster.folder / "begun").exists, "the first job runs", 120)
    assert cluster.kill_coordinator()
    (cluster.folder / "go").touch()
    cluster.settle([run], 180)
    failed = (State.FAILED, OK)
    states = cluster.states(run)
    assert {name: states[name] for name in ("good", "bad[s=a]")} == {"good": "COMPLETED", "bad[s=a]": "COMPLETED"}
    with cluster.reader() as reader:
        reasons = {one.name: (one.state, one.exit, one.reason) for one in reader.jobs(run=run)}
    assert reasons["old"] == (*failed, "MissingOutput")
    assert reasons["bad[s=b]"] == (*failed, "MissingOutput")
    assert reasons["clean"][2] == "NonZeroExitCode"
    assert reasons["noinput"] == (State.FAILED, None, "MissingInput")
    assert not (cluster.folder / "gone").exists()
    assert not (cluster.folder / "touched").exists()
