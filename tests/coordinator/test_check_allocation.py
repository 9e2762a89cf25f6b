"""What no allocation can do is refused when a run is submitted, with a sentence that says what to do."""

from __future__ import annotations

import pytest

from aver.coordinator.order import allocation_options as options
from aver.coordinator.order.allocations import check_allocation, host_of
from aver.coordinator.order.share import Share, share_of
from aver.coordinator.order.slurm_environment import on_each_node, task_pairs
from aver.errors import UsageError
from aver.model.job import Allocation, Argv, FlowSpec, JobSpec, Origin, Request, Script, Shell, Submission
from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions
from aver.spec.sbatch.script import parse_script
from aver.spec.sbatch.table import sbatch_table

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
    assert share_of(spec(word)).nodes == 3
    assert share_of(spec("--partition=gpu")).nodes == 1


@pytest.mark.parametrize("value", ["1-4", "0", "two", ""])
@pytest.mark.parametrize("option", ["--nodes=", "-N"])
def test_nodes_must_be_one_number(option: str, value: str) -> None:
    """The executor places a job once: it does not choose from a range."""
    with pytest.raises(UsageError, match=f"give one number of nodes, not '{value}'"):
        check_allocation(submission(spec(f"{option}{value}")))


def test_a_batch_script_may_have_several_nodes() -> None:
    """At most one for each of its tasks, as in Slurm."""
    check_allocation(submission(spec("--nodes=3", slurm=SlurmOptions(ntasks=6))))
    assert share_of(spec("--nodes=3", slurm=SlurmOptions(ntasks=6))).nodes == 3
    assert share_of(spec("--nodes=3", slurm=SlurmOptions(ntasks=2))).nodes == 2
    assert share_of(spec(slurm=SlurmOptions(ntasks=2))).nodes == 1


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


@pytest.mark.parametrize("word", ["--exclude=n[1-2],n7", "-xn[1-2],n7", "--exclud=n[1-2],n7"])
def test_a_job_may_leave_nodes_out(word: str) -> None:
    """By their names, each once; the last word counts, as for sbatch."""
    check_allocation(submission(spec(word)))
    assert share_of(spec("--exclude=n5", word)) == Share(exclude=("n1", "n2", "n7"))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--exclude=/etc/nodes", "'train': in an allocation --exclude names nodes, not the file '/etc/nodes'"),
        ("--exclude=n[1", "'train': --exclude: 'n\\[1' is not a list of nodes: use n3"),
        ("--nodelist=n3", "'train': in an allocation a job can't choose its nodes: leave out --nodelist"),
        ("-wn3", "leave out --nodelist"),
        ("-Fnodes", "leave out --nodefile"),
        ("--mem-per-cpu=100", "'train': in an allocation use mem, not --mem-per-cpu"),
        ("--ntasks=some", "'train': --ntasks: "),
        ("-G2", "'train': in an allocation use gpus, not --gpus"),
        ("--gres=gpu:2", "use gpus, not --gres"),
        ("--cpus-per-task=4", "'train': in an allocation use cpus, not --cpus-per-task"),
        ("--exclusive", "'train': in an allocation jobs share its nodes: leave out --exclusive"),
        ("-Lmatlab:2", "in an allocation use pools, not --licenses"),
        ("--mail-type=END", "in an allocation use notify, not --mail-type"),
        ("--deadline=noon", "in an allocation use deadline, not --deadline"),
        ("--hint=nomultithread", "in an allocation give --hint to srun inside the job"),
        ("--constraint=a100", "'train': --constraint=a100 is for the whole allocation: give it the same, or leave it"),
        ("-pgpu", "--partition=gpu is for the whole allocation"),
        ("--contiguous", "--contiguous is for the whole allocation"),
        ("--of-a-plugin=7", "--of-a-plugin=7 is for the whole allocation"),
    ],
)
def test_what_would_be_ignored_is_refused(word: str, said: str) -> None:
    """One line with the job's name."""
    with pytest.raises(UsageError, match=said) as raised:
        check_allocation(submission(spec(word)))
    assert "\n" not in str(raised.value)


def test_every_option_is_obeyed_or_refused() -> None:
    """Each option of sbatch is in one list and no more, so that none is left out in silence."""
    lists = (options.OBEYED, options.OF_SCRIPT, options.OF_AVER, options.OF_ALLOCATION, options.REFUSED)
    named = [name for names in lists for name in names]
    assert sorted(named) == sorted(set(sbatch_table().names.values()))


def test_what_the_allocation_has_as_well() -> None:
    """A job may name the partition, features or account that the allocation has, in whatever way both are written."""
    wish = Allocation(("-N4", "-p", "gpu", "--constraint=a100", "--of-a-plugin=7", "-Aproj"), 1, 120)
    job = spec("--partition=gpu", "-Ca100", "--of-a-plugin=7", "--account=proj")
    check_allocation(replace(submission(job), allocation=wish))
    with pytest.raises(UsageError, match="--partition=cpu is for the whole allocation"):
        check_allocation(replace(submission(spec("--partition=cpu")), allocation=wish))


def test_what_a_batch_script_may_have() -> None:
    """Its request and its mails have them; the key of a flow is not there to be used."""
    words = ("--cpus-per-task=2", "--mem=100M", "--mail-type=END", "--mail-user=me")
    check_allocation(submission(spec(*words, slurm=SlurmOptions(cpus_per_task=2))))


def test_a_batch_script_may_have_memory_for_each_cpu() -> None:
    """Its request has it already."""
    check_allocation(submission(spec("--mem-per-cpu=100", slurm=SlurmOptions(mem_per_cpu=100 * MIB))))


def test_the_tasks_of_a_flows_job() -> None:
    """As its own sbatch has them: `cpus` is for each task, and no task means no more nodes than one."""
    two = replace(spec("--ntasks=4"), request=Request(2))
    assert share_of(two) == Share(1, SlurmOptions(ntasks=4, cpus_per_task=2))
    by_key = replace(spec("--ntasks=4", "--cpus-per-task=2"), request=Request(8))
    assert share_of(by_key) == share_of(two)
    assert on_each_node(two.request, SlurmOptions(ntasks=4, cpus_per_task=2), 1).cpus == 8
    each = SlurmOptions(ntasks=6, ntasks_per_node=3, cpus_per_task=1)
    assert share_of(spec("--nodes=2", "--ntasks-per-node=3")) == Share(2, each)
    assert share_of(spec("--nodes=3", "-n2")).nodes == 2
    assert not share_of(spec("--partition=gpu")).has_steps


@pytest.mark.parametrize(
    ("command", "has_steps"),
    [
        (Shell("module load x; srun -n2 ./prog"), True),
        (Shell("./srunner; mpirun ./prog"), False),
        (Argv(("srun", "./prog")), True),
        (Argv(("./prog",)), False),
        (Script("#!/bin/bash\nsrun ./prog\n"), True),
    ],
)
def test_whose_steps_have_its_cpus(command: Shell | Argv | Script, has_steps: bool) -> None:
    """A job on one node keeps its CPUs for itself, unless it has tasks and starts them with srun."""
    one = replace(spec("--ntasks=2"), command=command)
    assert share_of(one).has_steps is has_steps
    assert not share_of(replace(one, slurm_options=())).has_steps
    assert share_of(replace(one, slurm_options=("--nodes=2",))).has_steps


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


@pytest.mark.parametrize("line", ["-M other", "-Mother", "--clusters=other,third", "--cluster other"])
def test_a_script_for_another_cluster_is_refused(line: str) -> None:
    """Its job would run where the engine does not look for it; on this machine every cluster's name means it."""
    flow = parse_script(f"#!/bin/sh\n#SBATCH {line}\ntrue\n".encode(), "job.sh", now=0.0)
    origin = Origin("me", 1, "here", "/", 0o22)
    check_allocation(Submission(flow, origin, engine="local"))
    with pytest.raises(UsageError, match=r"^job 'job.sh': leave out --clusters \(-M\): jobs go to sbatch's own"):
        check_allocation(Submission(flow, origin, engine="slurm"))
