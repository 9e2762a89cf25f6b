"""The SLURM_* variables of a batch job, as Slurm sets them. Pure: names and texts.

Every local job has those that name it, so that Slurm's commands and programs written for Slurm work in it;
what depends on options (NTASKS, CPUS_PER_TASK, MEM_PER_*) is there only if it was asked for.
"""

from __future__ import annotations

import os

from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.run import LiveRun
from aver.model.job import JobSpec, Request
from aver.model.record import replace
from aver.model.slurm_names import CLUSTER, PARTITION, QOS
from aver.model.slurm_options import SlurmOptions
from aver.spec.sbatch.array import is_array, step_of

MIB = 1 << 20


def slurm_pairs(run: LiveRun, attempt: LiveAttempt, request: Request, now: float) -> list[str]:
    """NAME=VALUE of all that Slurm would set for this attempt's script, which is started now with this request."""
    spec = run.spec(attempt.index)
    options = spec.slurm or SlurmOptions()
    found = _naming(run, attempt, spec, options)
    found |= _sizes(attempt, options)
    found["SLURM_JOB_START_TIME"] = str(int(now))
    if request.time_s is not None:
        found["SLURM_JOB_END_TIME"] = str(int(now) + request.time_s)
    if is_array(spec):
        found |= _array(run, attempt, spec)
    if attempt.attempt > 1:
        found["SLURM_RESTART_COUNT"] = str(attempt.attempt - 1)
    if spec.streams.append:
        found["SLURM_OPEN_MODE"] = "a"  # the files of its steps as well
    if "--overcommit" in spec.slurm_options:
        found["SLURM_OVERCOMMIT"] = "1"
    return [f"{name}={value}" for name, value in found.items()]


def on_each_node(request: Request, options: SlurmOptions, nodes: int) -> Request:
    """What a batch script on so many nodes has on each: CPUs for its share of the tasks, and `--mem` as it is."""
    total = max(request.whole_cpus, options.asked_cpus)
    each = max(-(-total // nodes), -(-(options.ntasks or nodes) // nodes) * (options.cpus_per_task or 1))
    mem_bytes = request.mem_bytes
    if mem_bytes is not None and options.mem_per_cpu is not None:
        mem_bytes = -(-mem_bytes * each // total)
    return replace(request, cpus=each, mem_bytes=mem_bytes)


def task_pairs(options: SlurmOptions, nodes: int) -> list[str]:
    """NAME=VALUE of what Slurm tells a job about its tasks."""
    found: dict[str, object] = {}
    if options.ntasks is not None:
        least, more = divmod(options.ntasks, nodes)
        shares = [(count, many) for count, many in ((least + 1, more), (least, nodes - more)) if many]
        found["SLURM_NTASKS"] = found["SLURM_NPROCS"] = options.ntasks
        found["SLURM_TASKS_PER_NODE"] = ",".join(
            f"{count}(x{many})" if many > 1 else f"{count}" for count, many in shares
        )
    if options.ntasks_per_node is not None:
        found["SLURM_NTASKS_PER_NODE"] = options.ntasks_per_node
    if options.cpus_per_task is not None:
        found["SLURM_CPUS_PER_TASK"] = options.cpus_per_task
    return [f"{name}={value}" for name, value in found.items()]


def _naming(run: LiveRun, attempt: LiveAttempt, spec: JobSpec, options: SlurmOptions) -> dict[str, str]:
    origin = run.submission.origin
    node = origin.host.partition(".")[0]
    number = str(attempt.job)
    return {
        "ENVIRONMENT": "BATCH",
        "SLURMD_NODENAME": node,
        "SLURM_CLUSTER_NAME": CLUSTER,
        "SLURM_JOBID": number,
        "SLURM_JOB_ACCOUNT": options.account or origin.user,
        "SLURM_JOB_GID": str(os.getgid()),
        "SLURM_JOB_ID": number,
        "SLURM_JOB_NAME": run.name(attempt.index) if spec.slurm is None else spec.name,
        "SLURM_JOB_NODELIST": node,
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_PARTITION": options.partition or PARTITION,
        "SLURM_JOB_QOS": options.qos or QOS,
        "SLURM_JOB_UID": str(origin.uid),
        "SLURM_JOB_USER": origin.user,
        "SLURM_NNODES": "1",
        "SLURM_NODELIST": node,
        "SLURM_NODE_ALIASES": "(null)",
        "SLURM_SUBMIT_DIR": origin.folder,
        "SLURM_SUBMIT_HOST": origin.host,
        "SLURM_GTIDS": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_TOPOLOGY_ADDR": node,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }


def _sizes(attempt: LiveAttempt, options: SlurmOptions) -> dict[str, str]:
    tasks = None if options.ntasks is None else str(options.ntasks)
    asked = (options.ntasks or 1) * (options.cpus_per_task or 1)  # tasks may share what there is
    cpus = str(max(asked, attempt.request.whole_cpus))
    found = {
        "SLURM_CPUS_ON_NODE": cpus,
        "SLURM_JOB_CPUS_PER_NODE": cpus,
        "SLURM_TASKS_PER_NODE": tasks or (cpus if options.has_whole_machine else "1"),
    }
    if tasks is not None:
        found |= {"SLURM_NTASKS": tasks, "SLURM_NPROCS": tasks}
    if options.ntasks_per_node is not None:
        found["SLURM_NTASKS_PER_NODE"] = str(options.ntasks_per_node)
    if options.cpus_per_task is not None:
        found["SLURM_CPUS_PER_TASK"] = str(options.cpus_per_task)
    if options.mem_per_cpu is not None:
        found["SLURM_MEM_PER_CPU"] = str(options.mem_per_cpu // MIB)
    elif attempt.request.mem_bytes is not None:
        found["SLURM_MEM_PER_NODE"] = str(attempt.request.mem_bytes // MIB)
    if attempt.request.gpus:
        gpus = ",".join(str(gpu) for gpu in attempt.gpus)
        found |= {"SLURM_GPUS_ON_NODE": str(attempt.request.gpus), "SLURM_JOB_GPUS": gpus}
    return found


def _array(run: LiveRun, attempt: LiveAttempt, spec: JobSpec) -> dict[str, str]:
    assert spec.matrix is not None
    values = tuple(int(value) for value in spec.matrix.axes[0][1])
    return {
        "SLURM_ARRAY_JOB_ID": str(run.number),
        "SLURM_ARRAY_TASK_ID": run.values(attempt.index)[0][1],
        "SLURM_ARRAY_TASK_COUNT": str(len(values)),
        "SLURM_ARRAY_TASK_MIN": str(values[0]),
        "SLURM_ARRAY_TASK_MAX": str(values[-1]),
        "SLURM_ARRAY_TASK_STEP": str(step_of(values)),
    }
