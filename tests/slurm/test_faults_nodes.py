"""Nodes that fail under their jobs: slurmd killed, slurmstepd killed."""

from __future__ import annotations

import os
import signal

import pytest
from fault_desk import OK, SEVEN, ClusterHome, job, until

from aver.model.states import State
from live_home import wait_for

FRAGILE = ("--partition=fragile",)


def _node_dies(cluster: ClusterHome, marks_down: bool) -> None:
    go = cluster.folder / "go"
    run = cluster.submit(
        job("lost", f'[ "$AVER_ATTEMPT" = 1 ] || exit 0; {until(go)} exit 0', slurm_options=FRAGILE),
        job("other", until(go) + "exit 0"),
    )
    cluster.wait_state(run, "lost", State.RUNNING)
    cluster.wait_state(run, "other", State.RUNNING)
    node = f"{cluster.lab.node}6"
    cluster.lab.stop(f"slurmd-{node}", signal.SIGKILL)
    if marks_down:
        cluster.lab.call("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    wait_for(lambda: "NODE_FAIL" in cluster.shown(run)["lost"], "the attempt is NODE_FAIL", 120)
    cluster.wait_state(run, "lost", State.PENDING, State.SUBMITTED)
    cluster.lab.heal()
    cluster.lab.can_ask("scontrol", "update", f"nodename={node}", "state=resume")
    go.touch()
    cluster.settle([run], 90)
    cluster.check(run, {"lost": (State.COMPLETED, OK), "other": (State.COMPLETED, OK)}, {"lost": 2})
    assert cluster.attempt_states(run, "lost") == [State.NODE_FAIL, State.COMPLETED]


def test_a_node_that_dies_under_its_job(cluster: ClusterHome) -> None:
    """slurmd killed and the node marked down: NODE_FAIL, and another attempt that does not count as a failure."""
    _node_dies(cluster, True)


@pytest.mark.long
def test_a_node_whose_death_slurm_finds_out_by_itself(cluster: ClusterHome) -> None:
    """The same, after SlurmdTimeout."""
    _node_dies(cluster, False)


def _lose_steps(cluster: ClusterHome) -> int:
    """A job whose slurmstepd are killed: its script ends with 7 under its witness, and Slurm does not notice."""
    go = cluster.folder / "go"
    text = f'[ "$AVER_ATTEMPT" = 1 ] || exit 0; {until(go)} exit 7'
    run = cluster.submit(job("orphan", text, slurm_options=FRAGILE))
    cluster.wait_state(run, "orphan", State.RUNNING)
    wait_for(cluster.keys_run, "its script runs")
    for pid in cluster.lab.steps_of(cluster.slurm_id(run)):
        os.kill(pid, signal.SIGKILL)
    go.touch()
    wait_for(cluster.record_of(run, "orphan").exists, "the record of its witness")
    asked = cluster.count_calls("squeue")
    wait_for(lambda: cluster.count_calls("squeue") >= asked + 4, "Slurm is asked")
    assert cluster.states(run) == {"orphan": "RUNNING"}
    return run


def test_a_killed_slurmstepd(cluster: ClusterHome) -> None:
    """RUNNING as long as Slurm says so, though its witness saw its end; a cancellation ends it as CANCELLED."""
    run = _lose_steps(cluster)
    with cluster.client() as client:
        client.call("cancel", ids=[run], by="tester", signal=None, now=False)
    cluster.settle([run])
    cluster.check(run, {"orphan": (State.CANCELLED, SEVEN)})


@pytest.mark.long
def test_a_killed_slurmstepd_that_slurm_misses(cluster: ClusterHome) -> None:
    """When Slurm misses the script it is NODE_FAIL, with the exit that its witness saw, and is tried again."""
    run = _lose_steps(cluster)

    def is_missed() -> bool:
        """A slurmd that starts tells slurmctld what runs; what was silent for long enough is missed then."""
        name = f"slurmd-{cluster.lab.node}6"
        cluster.lab.stop(name)
        cluster.lab.heal()
        wait_for((cluster.lab.folder / "run" / f"{name}.pid").exists, "slurmd has started")
        return "NODE_FAIL" in cluster.shown(run)["orphan"]

    wait_for(is_missed, "Slurm misses the script", 120)
    cluster.settle([run], 90)
    cluster.check(run, {"orphan": (State.COMPLETED, OK)}, {"orphan": 2})
    assert cluster.attempt_states(run, "orphan") == [State.NODE_FAIL, State.COMPLETED]
