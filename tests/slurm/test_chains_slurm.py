"""Needs of single members and hostile values on a real Slurm: as on this machine, also after `kill -9`."""

from __future__ import annotations

import pytest
from fault_desk import OK, SEVEN, ClusterHome, job

from aver.model.job import Matrix, Need, Needs
from aver.model.states import State
from live_home import wait_for

VALUES = ("a b", "it's", '"$(touch hit)"', "-n", "*", "a\\b", "é")


@pytest.fixture
def cluster(whole_cluster: ClusterHome) -> ClusterHome:
    """Nothing here breaks the lab."""
    return whole_cluster


def test_chains_after_a_kill(cluster: ClusterHome) -> None:
    """One bad sample skips its own chain only, whoever drives it."""
    samples = Matrix((("s", ("0", "7", "1")),))
    go = f"until test -e {cluster.folder}/go; do sleep 0.1; done; "
    run = cluster.submit(
        job("prep", "test {s} != 7 || exit {s}", matrix=samples),
        job("wait", f"test {{s}} = 0 || {{ {go} }}", matrix=samples, needs=Needs((Need("prep[same]"),))),
        job("last", "exit 0", matrix=samples, needs=Needs((Need("wait[s={s}]"),))),
    )
    wait_for(lambda: cluster.states(run).get("last[s=0]") == "COMPLETED", "the first chain is done", 120)
    assert cluster.states(run)["last[s=1]"] == "PENDING"
    assert cluster.kill_coordinator()
    (cluster.folder / "go").touch()
    cluster.settle([run], 120)
    done, never = (State.COMPLETED, OK), (State.SKIPPED, None)
    cluster.check(run, {
        "prep[s=0]": done, "prep[s=7]": (State.FAILED, SEVEN), "prep[s=1]": done,
        "wait[s=0]": done, "wait[s=7]": never, "wait[s=1]": done,
        "last[s=0]": done, "last[s=7]": never, "last[s=1]": done,
    })  # fmt: skip


def test_values_reach_the_program_on_a_node(cluster: ClusterHome) -> None:
    """In every context of the shell, and in the environment."""
    text = f"printf '%s|' {{v}} '{{v}}' \"{{v}}\" \"$AVER_PARAM_v\" > {cluster.folder}/said-$AVER_JOB"
    run = cluster.submit(job("say", text, matrix=Matrix((("v", VALUES),))))
    cluster.settle([run], 120)
    assert set(cluster.states(run).values()) == {"COMPLETED"}
    said = {path.read_text() for path in cluster.folder.glob("said-*")}
    assert said == {f"{value}|" * 4 for value in VALUES}
    assert not (cluster.folder / "hit").exists()
