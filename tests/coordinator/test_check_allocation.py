"""What no allocation can do is refused when a run is submitted, with a sentence that says what to do."""

from __future__ import annotations

import pytest

from aver.coordinator.order.allocations import check_allocation, host_of
from aver.coordinator.order.order import nodes_of
from aver.coordinator.order.slurm_environment import on_each_node, task_pairs
from aver.errors import UsageError
from aver.model.job import Allocation, Argv, FlowSpec, JobSpec, Origin, Request, Submission
from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions

MIB = 1 << 20
WISH = Allocation(("-N4", "-t10"), 1, 120)


def submission(spec: JobSpec, host: str = "") -> Submission:
    return Submission(FlowSpec("a", (spec,)), Origin("me", 1, "here", "/", 0o22), "allocation", WISH, host)


def spec(*options: str, host: str | None = None, slurm: SlurmOptions | None = None) -> JobSpec:
    return JobSpec("train", Argv(("true",)), slurm_options=options, host=host, slurm=slurm)


@pytest.mark.parametrize("word", ["--nodes=3", "-N=3", "-N3"])
def test_a_job_may_have_several_nodes(word: str) -> None:
    """As many as `nodes` says, however it is written; one without it."""
    check_allocation(submission(spec(word)))
    assert nodes_of(spec(word)) == 3
    assert nodes_of(spec("--partition=gpu")) == 1


@pytest.mark.parametrize("value", ["1-4", "0", "two", ""])
@pytest.mark.parametrize("option", ["--nodes=", "-N"])
def test_nodes_must_be_one_number(option: str, value: str) -> None:
    """The executor places a job once: it does not choose from a range."""
    with pytest.raises(UsageError, match=f"give one number of nodes, not '{value}'"):
        check_allocation(submission(spec(f"{option}{value}")))


def test_a_batch_script_may_have_several_nodes() -> None:
    """At most one for each of its tasks, as in Slurm."""
    check_allocation(submission(spec("--nodes=3", slurm=SlurmOptions(ntasks=6))))
    assert nodes_of(spec("--nodes=3", slurm=SlurmOptions(ntasks=6))) == 3
    assert nodes_of(spec("--nodes=3", slurm=SlurmOptions(ntasks=2))) == 2
    assert nodes_of(spec(slurm=SlurmOptions(ntasks=2))) == 1


@pytest.mark.parametrize(
    ("asked", "options", "cpus", "mib"),
    [
        (Request(6, 0, 300 * MIB), SlurmOptions(ntasks=6), 2, 300),  # --mem is said for each node
        (Request(6, 0, 600 * MIB), SlurmOptions(ntasks=6, mem_per_cpu=100 * MIB), 2, 200),
        (Request(8, 0, 800 * MIB), SlurmOptions(ntasks=4, cpus_per_task=2, mem_per_cpu=100 * MIB), 4, 400),
        (Request(8, 0, 1600 * MIB), SlurmOptions(ntasks=4, cpus_per_task=2, mem_per_cpu=100 * MIB), 4, 800),  # a retry
        (Request(3, 0, None), SlurmOptions(ntasks=3), 1, None),
    ],
)
def test_what_a_batch_script_has_on_each_node(
    asked: Request, options: SlurmOptions, cpus: int, mib: int | None
) -> None:
    """CPUs for the most tasks that one of three nodes gets."""
    found = on_each_node(asked, options, 3)
    assert (found.cpus, found.mem_bytes) == (cpus, None if mib is None else mib * MIB)


def test_what_a_batch_script_is_told_of_its_tasks() -> None:
    """As Slurm tells it; without an option nothing of it."""
    assert task_pairs(SlurmOptions(cpus_per_task=2), 3) == ["SLURM_CPUS_PER_TASK=2"]
    assert task_pairs(SlurmOptions(ntasks=6, ntasks_per_node=2), 3) == [
        "SLURM_NTASKS=6", "SLURM_NPROCS=6", "SLURM_TASKS_PER_NODE=2(x3)", "SLURM_NTASKS_PER_NODE=2",
    ]  # fmt: skip
    assert "SLURM_TASKS_PER_NODE=2,1(x2)" in task_pairs(SlurmOptions(ntasks=4), 3)


@pytest.mark.parametrize(
    ("own", "of_run", "host"),
    [("login1", "", "login1"), (None, "login1", "login1"), ("login1", "other", "login1"), ("", "login1", "")],
)
def test_the_host_of_allocations(own: str | None, of_run: str, host: str) -> None:
    """The job's own, or that of the settings; an empty one is this machine, whatever the settings say."""
    check_allocation(submission(spec(host=own), of_run))
    assert host_of(submission(spec(host=own), of_run)) == host


def test_the_allocations_of_a_run_are_on_one_cluster() -> None:
    """They are taken once for all of its jobs."""
    two = replace(
        submission(spec(), "login1"), flow=FlowSpec("a", (spec(), replace(spec(host="login2"), name="other")))
    )
    with pytest.raises(UsageError, match=r"'other': the allocations of a run are on one cluster"):
        check_allocation(two)
