"""Jobs on several nodes of an allocation, on a real Slurm."""

from __future__ import annotations

from pathlib import Path

from allocation_desk import SMALL, WIDE, allocation_ids, reasons_of, submit_in, wait_begun
from fault_desk import OK, SEVEN, ClusterHome, job

from aver.model.job import JobSpec, Need, Needs, Request
from aver.model.record import replace
from aver.model.states import State
from live_home import wait_for

MIB = 1 << 20
SAYS = 'echo "$SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST"; srun sh -c \'echo "$SLURMD_NODENAME"\''


def wide(name: str, text: str, nodes: int = 2, cpus: int = 3, needs: tuple[str, ...] = ()) -> JobSpec:
    """A job on so many nodes; of two with 3 of the 4 CPUs, no node has both."""
    spec = job(name, text, request=Request(cpus=cpus, mem_bytes=300 * MIB), needs=Needs(tuple(map(Need, needs))))
    return replace(spec, slurm_options=(f"--nodes={nodes}",))


def lines_of(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1]


def steps_of(home: ClusterHome, number: int) -> list[str]:
    """Names of the steps that Slurm has of the allocation, without the batch step and its like."""
    said = home.lab.call("squeue", "-h", "--steps", "-j", str(number), "-o", "%i %j").splitlines()
    return [line.split()[1] for line in said if line.split()[0].rpartition(".")[2].isdecimal()]


def test_steps_run_on_the_nodes_of_their_job_alone(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """Two jobs at once have two nodes each; `srun` without options starts a task on each of its job's own nodes."""
    meet = "touch {0}/{1}; for _ in $(seq 300); do [ -e {0}/{2} ] && break; sleep 0.1; done; "
    jobs = [
        wide(one, f"{meet.format(tmp_path, one, other)}{{ {SAYS}; }} >{tmp_path}/{one}.out")
        for one, other in (("a", "b"), ("b", "a"))
    ]
    run = submit_in(whole_cluster, jobs, WIDE)
    whole_cluster.settle([run])
    whole_cluster.check(run, {"a": (State.COMPLETED, OK), "b": (State.COMPLETED, OK)})
    seen: list[str] = []
    for name in ("a", "b"):
        first, *ran_on = lines_of(tmp_path / f"{name}.out")
        count, nodes = first.split()
        assert count == "2"
        assert sorted(ran_on) == nodes.split(",")
        seen += ran_on
    assert len(set(seen)) == 4


def test_a_failing_task_is_heard_from_the_second_node(whole_cluster: ClusterHome) -> None:
    """The job has srun's exit code, its step the task's own, and its nodes are shown."""
    run = submit_in(whole_cluster, [wide("ranks", "srun sh -c 'exit $((7 * SLURM_NODEID))'")], WIDE)
    whole_cluster.settle([run])
    whole_cluster.check(run, {"ranks": (State.FAILED, SEVEN)})
    with whole_cluster.reader() as reader:
        (row,) = reader.jobs(run=run)
        (attempt,) = reader.attempts(row.id)
        (step,) = reader.steps(row.id)
        tasks = {task.task: task.exit for task in reader.tasks(row.id, 1, step.step)}
    assert tasks == {0: OK, 1: SEVEN}
    assert (step.state, step.exit) == (State.FAILED, SEVEN)
    assert attempt.node.endswith("n[1-2]"), attempt.node


def test_steps_end_with_their_job(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """What a job left running is ended before its nodes go to the next one, which needs all of them."""
    leaves = (
        f"srun sh -c 'touch {tmp_path}/$SLURM_NODEID; exec sleep 600' & while [ ! -e {tmp_path}/1 ]; do sleep 0.1; done"
    )
    run = submit_in(whole_cluster, [wide("leaves", leaves), wide("next", "srun true", 4, 4, ("leaves",))], WIDE)
    whole_cluster.settle([run])
    whole_cluster.check(run, {"leaves": (State.COMPLETED, OK), "next": (State.COMPLETED, OK)})


def test_a_cancelled_job_leaves_no_step(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """Cancelled on all of its nodes; what runs beside it goes on."""
    text = f"trap '' TERM; srun sh -c 'trap \"\" TERM; touch {tmp_path}/$SLURM_NODEID; sleep 600'; sleep 600"
    beside = f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done"
    run = submit_in(whole_cluster, [wide("long", text), job("beside", beside)], WIDE)
    wait_for((tmp_path / "1").exists, "both tasks run")
    number = wait_begun(whole_cluster, run)
    with whole_cluster.client() as client:
        client.call("cancel", ids=[run + 1], by="tester", signal=None, now=False)
    wait_for(lambda: len(steps_of(whole_cluster, number)) == 1, "its steps end", 60)
    (tmp_path / "go").touch()
    whole_cluster.settle([run])
    with whole_cluster.reader() as reader:
        assert {row.name: row.state for row in reader.jobs(run=run)} == {
            "long": State.CANCELLED,
            "beside": State.COMPLETED,
        }


def test_too_many_nodes_wait_with_the_reason(whole_cluster: ClusterHome) -> None:
    """A job that asks for more nodes than the allocation has says so; others pass it."""
    run = submit_in(whole_cluster, [wide("two", "true", 2, 1), job("one", "true")], SMALL)
    whole_cluster.wait_state(run, "one", State.COMPLETED)
    wait_for(lambda: reasons_of(whole_cluster, run)["two"] == "AllocationTooSmall", "the reason")
    with whole_cluster.client() as client:
        client.call("cancel", ids=[run], by="tester", signal=None, now=False)
    whole_cluster.settle([run])
    assert len(allocation_ids(whole_cluster, run)) == 1
