"""What no allocation can do is refused when a run is submitted, with a sentence that says what to do."""

from __future__ import annotations

import pytest

from aver.coordinator.order.allocations import check_allocation
from aver.coordinator.order.order import nodes_of
from aver.errors import UsageError
from aver.model.job import Allocation, Argv, FlowSpec, JobSpec, Origin, Submission
from aver.model.slurm_options import SlurmOptions

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


def test_a_batch_script_has_one_node() -> None:
    """Its tasks and CPUs are said for all of its nodes together."""
    with pytest.raises(UsageError, match="a batch script runs on one node, not on 2"):
        check_allocation(submission(spec("--nodes=2", slurm=SlurmOptions())))


@pytest.mark.parametrize(("own", "of_run"), [("login1", ""), (None, "login1"), ("login1", "other")])
def test_no_allocation_is_taken_over_ssh(own: str | None, of_run: str) -> None:
    """Whether the job names the host, or the settings do: this machine's sbatch would be another cluster's."""
    with pytest.raises(UsageError, match=r"over ssh \(login1\)"):
        check_allocation(submission(spec(host=own), of_run))


def test_a_job_that_is_to_run_here_needs_no_ssh() -> None:
    """An empty host is this machine, whatever the settings say."""
    check_allocation(submission(spec(host=""), "login1"))
    check_allocation(submission(spec()))
