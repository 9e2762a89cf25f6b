"""Jobs on several nodes of an allocation, on a real Slurm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from allocation_desk import SMALL, WIDE, allocation_ids, reasons_of, submit_in, wait_begun
from fault_desk import OK, RECORD, SEVEN, ClusterHome, job

from aver.model.job import JobSpec, Need, Needs, Request
from aver.model.record import replace
from aver.model.states import State
from aver.spec.sbatch.script import parse_script
from live_home import wait_for

MIB = 1 << 20
SAYS = 'echo "$SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST"; srun sh -c \'echo "$SLURMD_NODENAME"\''


def wide(name: str, text: str, nodes: int = 2, cpus: int = 3, needs: tuple[str, ...] = ()) -> JobSpec:
    """A job on so many nodes; of two with 3 of the 4 CPUs, no node has both."""
    spec = job(name, text, request=Request(cpus=cpus, mem_bytes=300 * MIB), needs=Needs(tuple(map(Need, needs))))
    return replace(spec, slurm_options=(f"--nodes={nodes}",))


def batch(name: str, options: str, text: str) -> JobSpec:
    """A batch script with these #SBATCH options."""
    script = f"#!/bin/bash\n#SBATCH -J {name} {options}\n{RECORD}\n{text}\n"
    (spec,) = parse_script(script.encode(), name, now=0).jobs
    return spec


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


TELLS = r"""
for name in NNODES JOB_NUM_NODES NTASKS NPROCS NTASKS_PER_NODE CPUS_PER_TASK TASKS_PER_NODE JOB_CPUS_PER_NODE; do
    name=SLURM_$name; echo "$name=${!name}"
done
srun sh -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS on $SLURM_NODEID"' | sort
srun -n2 sh -c 'echo "two: $SLURM_PROCID on $SLURM_NODEID"' | sort
srun -N1 -n1 sh -c 'echo "one: $SLURM_PROCID of $SLURM_NTASKS on $SLURM_NODEID"'
srun -n99 true 2>&1 | sed -n 's/error: \(.*\) job [0-9]*:/\1/p'
"""


@pytest.mark.parametrize(
    "options",
    [
        "-N2 -n4 --ntasks-per-node=2 --mem=300", "-N2 --ntasks-per-node=1 -c2 --mem=300", "-N3 -n2 --mem=300",
        "-n3 --mem=300", "-N1 -n2 -c2 --mem=300", "-N1 --ntasks-per-node=2 --mem=300", "-c2 --mem=300",
    ],
)  # fmt: skip
def test_a_batch_script_is_as_a_job_of_slurm(whole_cluster: ClusterHome, tmp_path: Path, options: str) -> None:
    """Its variables, and the tasks that its steps have, are those that it has as a job of its own."""
    said = []
    for name in ("alone", "inside"):
        inside = name == "inside"
        of_cores = "" if inside else " --ntasks-per-core=1"  # a CPU for each task, as in the allocation
        script = batch(name, options + of_cores, f"{{ {TELLS} }} >{tmp_path}/{name} 2>&1")
        run = submit_in(whole_cluster, [script], WIDE) if inside else whole_cluster.submit(script)
        whole_cluster.settle([run])
        whole_cluster.check(run, {name: (State.COMPLETED, OK)})
        said.append([re.sub(r"job \d+", "job N", line) for line in lines_of(tmp_path / name)])
    assert said[0] == said[1]


@pytest.mark.parametrize("options", ["-n3 --mem=300", "-N1 -n1 -c2 --mem=300", "-c2 --mem=300"])
def test_a_batch_script_without_steps_has_its_variables_and_its_cpus(
    whole_cluster: ClusterHome, tmp_path: Path, options: str
) -> None:
    """What it says of its tasks is as in a job of its own; Slurm gives its CPUs to no other step meanwhile."""
    names = "NTASKS NPROCS NTASKS_PER_NODE CPUS_PER_TASK TASKS_PER_NODE CPUS_ON_NODE"
    tells = f'for name in {names}; do name=SLURM_$name; echo "$name=${{!name}}"; done >{tmp_path}/'
    said = []
    for name in ("alone", "inside"):
        script = batch(name, options, f"{tells}{name}")
        run = submit_in(whole_cluster, [script], WIDE) if name == "inside" else whole_cluster.submit(script)
        whole_cluster.settle([run])
        whole_cluster.check(run, {name: (State.COMPLETED, OK)})
        said.append(lines_of(tmp_path / name))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "options", [("--ntasks=2", "--cpus-per-task=2"), ("--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1")]
)
def test_the_tasks_of_a_flows_job_are_those_of_its_own_sbatch(
    whole_cluster: ClusterHome, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Its variables, and what `srun` starts."""
    said = []
    for name in ("alone", "inside"):
        spec = job(name, f"{{ {TELLS} }} >{tmp_path}/{name} 2>&1", request=Request(cpus=4, mem_bytes=300 * MIB))
        spec = replace(spec, slurm_options=options, command=replace(spec.command, shell=("bash",)))  # type: ignore[arg-type]
        run = submit_in(whole_cluster, [spec], WIDE) if name == "inside" else whole_cluster.submit(spec)
        whole_cluster.settle([run])
        whole_cluster.check(run, {name: (State.COMPLETED, OK)})
        said.append([re.sub(r"job \d+", "job N", line) for line in lines_of(tmp_path / name)])
    assert said[0] == said[1]
    assert "task 1 of" in "\n".join(said[0])


def test_a_job_does_not_run_on_nodes_that_it_leaves_out(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """In a flow's job and in a batch script, also where the node is the only one that is free; on none it waits."""
    node = whole_cluster.lab.node
    tells = f'echo "$SLURMD_NODENAME" >{tmp_path}/'
    jobs = [
        replace(job("flow", f"{tells}flow"), slurm_options=(f"--exclude={node}[1-3]",)),
        batch("script", f"-n1 --mem=100 -x {node}[1,3-4]", f"{tells}script"),
        replace(wide("two", f"srun -n2 sh -c 'echo $SLURMD_NODENAME' | sort >{tmp_path}/two", 2, 1),
                slurm_options=("--nodes=2", f"-x{node}1,{node}3")),
        replace(job("nowhere", f"{tells}nowhere"), slurm_options=(f"--exclude={node}[1-4]",)),
    ]  # fmt: skip
    run = submit_in(whole_cluster, jobs, WIDE)
    for name in ("flow", "script", "two"):
        whole_cluster.wait_state(run, name, State.COMPLETED)
    wait_for(lambda: reasons_of(whole_cluster, run)["nowhere"] == "AllocationTooSmall", "the reason")
    with whole_cluster.client() as client:
        client.call("cancel", ids=[run], by="tester", signal=None, now=False)
    whole_cluster.settle([run])
    found = {name: lines_of(tmp_path / name) for name in ("flow", "script", "two")}
    assert found == {"flow": [f"{node}4"], "script": [f"{node}2"], "two": [f"{node}2", f"{node}4"]}
    assert not (tmp_path / "nowhere").exists()


def test_a_batch_script_ends_as_its_step_does(whole_cluster: ClusterHome) -> None:
    """A task that fails on the second node is the script's end, and its step's tasks are known."""
    run = submit_in(whole_cluster, [batch("ranks", "-N2 -n2", "srun sh -c 'exit $((7 * SLURM_NODEID))'")], WIDE)
    whole_cluster.settle([run])
    whole_cluster.check(run, {"ranks": (State.FAILED, SEVEN)})
    with whole_cluster.reader() as reader:
        (row,) = reader.jobs(run=run)
        (step,) = reader.steps(row.id)
        assert {task.task: task.exit for task in reader.tasks(row.id, 1, step.step)} == {0: OK, 1: SEVEN}


def test_a_step_that_excludes_a_node_stays_on_its_jobs_nodes(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """`srun -x` leaves out a node of the job, and no step goes to nodes that the job has not got."""
    text = f"""
echo "$SLURM_JOB_NODELIST" >{tmp_path}/nodes
first=${{SLURM_JOB_NODELIST%%,*}}
srun -N1 -n1 -x "$first" sh -c 'echo "$SLURMD_NODENAME"' >{tmp_path}/one
srun -N2 -n2 "--exclude=$first" true && exit 9
exit 0"""
    run = submit_in(whole_cluster, [wide("two", text)], WIDE)
    whole_cluster.settle([run])
    whole_cluster.check(run, {"two": (State.COMPLETED, OK)})
    (nodes,) = lines_of(tmp_path / "nodes")
    assert lines_of(tmp_path / "one") == nodes.split(",")[1:]
