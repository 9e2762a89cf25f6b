"""A job as `squeue --json` and `scontrol show job --json` lay it out. What is not known is not `set`, never 0."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import CLUSTER
from aver.slurm_cli.documents import exit_code, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aver.slurm_cli.documents import Document
    from aver.slurm_cli.facts import JobFacts

_NO_TIMES = ("preempt_time", "preemptable_time", "resize_time", "deadline")
_EMPTY = (
    "admin_comment", "batch_features", "burst_buffer", "burst_buffer_state", "cluster_features", "container",
    "container_id", "cpus_per_tres", "cron", "extra", "failed_node", "federation_origin", "federation_siblings_active",
    "federation_siblings_viable", "het_job_id_set", "mail_user", "mcs_label", "memory_per_tres", "network", "prefer",
    "scheduled_nodes", "selinux_context", "tres_bind", "tres_freq",
    "tres_per_job", "tres_per_socket", "tres_per_task",
)  # fmt: skip
_UNSET = (
    "cores_per_socket", "cpu_frequency_governor", "cpu_frequency_maximum", "cpu_frequency_minimum", "het_job_id",
    "het_job_offset", "sockets_per_node", "tasks_per_board", "tasks_per_core", "tasks_per_node", "tasks_per_socket",
    "tasks_per_tres", "threads_per_core", "time_minimum", "max_cpus", "max_nodes", "delay_boot",
)  # fmt: skip


def queue_document(jobs: Iterable[JobFacts], now: float, shape: int) -> Document:
    return {
        "jobs": [job_document(job, shape) for job in jobs],
        "last_backfill": number(None),
        "last_update": number(now),
    }


def job_document(job: JobFacts, shape: int) -> Document:
    """Every key of the shape, by name."""
    found: Document = dict.fromkeys(_EMPTY, "") | {name: number(None) for name in (*_UNSET, *_NO_TIMES)}
    found |= _who(job) | _how(job) | _when(job) | _resources(job) | _files(job, shape)
    found |= _before_42(job) if shape < 42 else {"priority_by_partition": [], "required_switches": 0}
    if shape >= 41:
        found["job_resources"] = _held(job)
    if shape >= 43:
        found |= {"licenses_allocated": job.text("licenses") if job.node else "", "segment_size": 0}
    if shape >= 44:
        found |= {"step_id": _own_id(job), "submit_line": job.submit_line}
    if shape >= 45:
        found |= {"container_type": "", "memory_update_delay": 0, "memory_update_margin": 0}
        del found["power"]
    return dict(sorted(found.items()))


def _who(job: JobFacts) -> Document:
    index = job.array_index if not job.rest and job.array_index.isdigit() else None
    return {
        "account": job.account,
        "allocating_node": str(job.origin.get("host", "")).partition(".")[0],
        "array_job_id": number(job.array_job or 0),
        "array_max_tasks": number(job.array_limit or 0),
        "array_task_id": number(None if index is None else int(index)),
        "array_task_string": job.rest,
        "association_id": 0,
        "batch_flag": job.is_batch,
        "batch_host": job.node,
        "cluster": CLUSTER,
        "comment": job.comment,
        "system_comment": job.system_comment,
        "group_id": job.gid,
        "group_name": job.group,
        "job_id": job.number,
        "name": job.name,
        "nice": int(job.named.get("nice", "0")) if job.named.get("nice", "0").lstrip("-").isdigit() else 0,
        "partition": job.partition,
        "qos": job.qos,
        "resv_name": job.text("reservation"),
        "user_id": job.uid,
        "user_name": job.user,
        "wckey": job.text("wckey"),
    }


def _how(job: JobFacts) -> Document:
    return {
        "dependency": job.dependency,
        "derived_exit_code": exit_code(job.derived_text, has_ended=job.is_settled),
        "exit_code": exit_code(job.exit_text, job.row.exit, has_ended=job.is_settled),
        "flags": [],
        "hold": job.is_held,
        "job_state": [job.queue_state],
        "mail_type": [],
        "power": {"flags": []},
        "priority": number(job.priority),
        "profile": ["NOT_SET"],
        "reboot": False,
        "requeue": bool(job.requeue),
        "restart_cnt": job.restarts,
        "state_reason": job.reason.partition(":")[0],
        "state_description": job.reason.replace("_", " ") if ":" in job.reason else "",
    }


def _when(job: JobFacts) -> Document:
    limit = job.limit_s
    is_suspended = job.state == "SUSPENDED"
    return {
        "accrue_time": number(None if job.row.reason == "BeginTime" else job.eligible_at),
        "deadline": number(job.spec.get("deadline_at")),
        "eligible_time": number(job.eligible_at),
        "end_time": number(job.ended_at),
        "last_sched_evaluation": number(job.row.planned_at or job.submitted_at),
        "pre_sus_time": number(job.elapsed_s if is_suspended else 0),
        "start_time": number(job.started_at),
        "submit_time": number(job.submitted_at),
        "suspend_time": number(job.suspended_at if is_suspended else 0),
        "time_limit": number(None if limit is None else -(-limit // 60), is_infinite=limit is None),
    }


def _resources(job: JobFacts) -> Document:
    tres = ",".join(f"{name}={value}" for name, value in job.tres)
    mem = job.mem_mib // max(1, job.cpus) if job.is_mem_per_cpu else job.mem_mib
    held = {} if not job.node else {
        "nodes": job.node,
        "allocated_cores": job.cpus,
        "allocated_cpus": job.cpus,
        "allocated_hosts": 1,
        "allocated_nodes": [{"nodename": job.node, "cpus_used": job.cpus, "memory_allocated": job.mem_mib}],
    }  # fmt: skip
    return {
        "billable_tres": {"set": True, "infinite": False, "number": float(job.cpus)},
        "contiguous": False,
        "core_spec": 0,
        "cpus": number(job.cpus),
        "cpus_per_task": number(job.cpus_per_task),
        "excluded_nodes": job.text("exclude"),
        "features": job.text("features"),
        "gres_detail": [f"gpu:{job.gpus}"] if job.gpus and job.node else [],
        "job_resources": held,
        "job_size_str": [],
        "licenses": job.text("licenses"),
        "maximum_switch_wait_time": 0,
        "memory_per_cpu": number(mem if job.is_mem_per_cpu else None),
        "memory_per_node": number(None if job.is_mem_per_cpu else mem),
        "minimum_cpus_per_node": number(job.cpus_per_task),
        "minimum_tmp_disk_per_node": number(0),
        "node_count": number(1),
        "nodes": job.node,
        "required_nodes": job.text("nodelist"),
        "shared": [],
        "sockets_per_board": 0,
        "tasks": number(job.tasks),
        "thread_spec": 32766,
        "tres_alloc_str": tres if job.node else "",
        "tres_per_node": f"gres:{job.text('gres') or f'gpu:{job.gpus}'}" if job.gpus else "",
        "tres_req_str": tres,
    }


def _before_42(job: JobFacts) -> Document:
    is_exclusive = "exclusive" in job.named
    return {
        "exclusive": ["true"] if is_exclusive else [],
        "minimum_switches": 0,
        "oversubscribe": not is_exclusive,
        "show_flags": ["ALL", "DETAIL", "LOCAL"],
    }


def _held(job: JobFacts) -> Document | None:
    """What the job has, since v0.0.41. Which cores of a socket it has is not known: jobs are not bound to any."""
    if not job.node:
        return None
    is_whole = "exclusive" in job.named
    return {
        "select_type": ["CPU", "MEMORY"],
        "nodes": {
            "count": 1,
            "select_type": ["RESERVED" if is_whole else "ONE_ROW"],
            "list": job.node,
            "whole": is_whole,
            "allocation": [
                {
                    "index": 0,
                    "name": job.node,
                    "cpus": {"count": job.cpus, "used": 0},
                    "memory": {"used": 0, "allocated": job.mem_mib},
                    "sockets": [],
                }
            ],
        },
        "cpus": job.cpus,
        "threads_per_core": number(None),
    }


def _own_id(job: JobFacts) -> Document:
    return {
        "sluid": job.sluid,
        "job_id": number(job.number),
        "step_het_component": number(None),
        "step_id": "entire",
    }


def _files(job: JobFacts, shape: int) -> Document:
    files, shown = job.files, job.book.shown
    found: Document = {"command": job.command, "current_working_directory": job.workdir}
    out, err = shown(files.stdout), shown(files.stderr or "")
    inn = shown(files.stdin or "/dev/null")
    if shape < 43:
        return found | {"standard_error": err or out, "standard_input": inn, "standard_output": out}
    for name, short, path in (("error", "stderr", err), ("input", "stdin", inn), ("output", "stdout", out)):
        found |= {f"standard_{name}": job.pattern(short) or path, f"{short}_expanded": path}
    return found
