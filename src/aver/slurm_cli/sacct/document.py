"""Jobs with their steps as `sacct --json` lays them out. What was not measured is left out of the lists, never 0."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import CLUSTER
from aver.slurm_cli.documents import TRES_IDS, exit_code, number, tres
from aver.slurm_cli.sacct.fields import Row, waited_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aver.slurm_cli.documents import Document
    from aver.slurm_cli.facts import JobFacts


def accounts_document(rows: Iterable[Row], shape: int) -> Document:
    """The rows of one job together: first the job's own, then those of its script and steps."""
    jobs: list[Document] = []
    newest: JobFacts | None = None
    for row in rows:
        if row.job is not newest:  # of a step that was asked for alone, its job is there all the same
            newest = row.job
            jobs.append(_job(row if row.is_job else Row(row.job, "", None, row.units), shape))
        if not row.is_job:
            jobs[-1]["steps"].append(_step(row, shape))
    return {"jobs": jobs}


def _job(row: Row, shape: int) -> Document:
    job = row.job
    index = job.array_index if not job.rest and job.array_index.isdigit() else None
    found: Document = {
        "account": job.account,
        "comment": {"administrator": "", "job": job.comment, "system": job.system_comment},
        "allocation_nodes": 1 if job.has_run else 0,
        "array": {
            "job_id": job.array_job or 0,
            "limits": {"max": {"running": {"tasks": job.array_limit or 0}}},
            "task_id": number(None if index is None else int(index)),
            "task": job.rest,
        },
        "association": {"account": job.account, "cluster": CLUSTER, "partition": "", "user": job.user, "id": 0},
        "block": "",
        "cluster": CLUSTER,
        "constraints": job.text("features"),
        "container": "",
        "derived_exit_code": exit_code(job.derived_text, has_ended=job.is_settled),
        "time": _job_time(row),
        "exit_code": exit_code(row.exit, job.row.exit, has_ended=job.is_settled),
        "extra": "",
        "failed_node": "",
        "flags": [],
        "group": job.group,
        "het": {"job_id": 0, "job_offset": number(None)},
        "job_id": job.number,
        "name": job.name,
        "licenses": job.text("licenses"),
        "mcs": {"label": ""},
        "nodes": job.node or "None assigned",
        "partition": job.partition,
        "hold": job.is_held,
        "priority": number(job.priority),
        "qos": job.qos,
        "required": _required(job),
        "kill_request_user": _killer(job.cancelled_by),
        "reservation": {"id": 0, "name": job.text("reservation")},
        "script": "",
        "state": {"current": [_state(row)], "reason": job.reason.partition(":")[0]},
        "steps": [],
        "submit_line": job.submit_line,
        "tres": {
            "allocated": tres(job.tres, job.mem_mib) if job.has_run else [],
            "requested": tres(job.tres, job.mem_mib),
        },
        "used_gres": "",
        "user": job.user,
        "wckey": {"wckey": job.text("wckey"), "flags": []},
        "working_directory": job.workdir,
    }
    if shape >= 41:
        found["time"]["planned"] = number(waited_s(job))
        for name in ("stdin", "stdout", "stderr"):
            path = job.stream(name) if name != "stderr" or job.pattern(name) else ""
            found |= {name: job.pattern(name) or path, f"{name}_expanded": path}
    if shape >= 42:
        found |= {"qosreq": job.text("qos"), "restart_cnt": job.restarts}
    if shape >= 43:
        found["reservation"]["requested"] = job.text("reservation")
        found["segment_size"] = 0
    if shape >= 45:
        sharing = {"exclusive": job.text("exclusive"), "oversubscribe": ""}
        found |= {"sluid": job.sluid, "original_sluid": job.first_sluid, **sharing}
    return found


def _step(row: Row, shape: int) -> Document:
    job, node = row.job, row.job.node
    by = None if row.step is None else job.step_cancelled_by(row.step)
    has_ended = row.ended_at is not None
    raw = job.row.exit if row.step is None else row.step.exit
    found: Document = {
        "time": {
            "elapsed": row.elapsed_s,
            "end": number(row.ended_at),
            "start": number(row.started_at),
            "suspended": int(job.suspended_s),
            **_cpu(row),
        },
        "exit_code": exit_code(row.exit or "?", raw, has_ended=has_ended),
        "nodes": {"count": 1, "range": node, "list": [node]},
        "tasks": {"count": row.tasks},
        "pid": "",
        "CPU": {"requested_frequency": {"min": number(None), "max": number(None)}, "governor": "0"},
        "kill_request_user": _killer(by),
        "state": [_state(row)],
        "statistics": {"CPU": {"actual_frequency": 0}, "energy": {"consumed": number(None)}},
        "step": {
            "id": f"{job.number}.{row.label}",
            "name": row.label if row.step is None else job.book.shown(row.step.name),
        },
        "task": {"distribution": "Unknown"},
        "tres": {"requested": _used(row), "consumed": {"max": [], "min": [], "average": [], "total": []},
                 "allocated": _held(row)},
    }  # fmt: skip
    if shape >= 43:
        limit = None if row.step is None else row.step_spec.get("time_s")
        found["time"]["limit"] = number(None if limit is None else -(-limit // 60), is_infinite=limit is None)
        for name in ("stdin", "stdout", "stderr"):
            found["step"] |= {name: "", f"{name}_expanded": ""}
    if shape >= 45:
        found["submit_line"] = ""
        del found["pid"]
    return found


def _job_time(row: Row) -> Document:
    job = row.job
    limit = job.limit_s
    return {
        "elapsed": row.elapsed_s,
        "eligible": int(job.eligible_at or 0),
        "end": int(row.ended_at or 0),
        "start": int(row.started_at or 0),
        "submission": int(job.submitted_at),
        "suspended": int(job.suspended_s),
        "limit": number(None if limit is None else -(-limit // 60), is_infinite=limit is None),
        **_cpu(row),
    }


def _cpu(row: Row) -> Document:
    return {"system": _seconds(row.system_s), "total": _seconds(row.cpu_s), "user": _seconds(row.user_s)}


def _seconds(value: float | None) -> Document:
    micros = int((value or 0.0) * 1_000_000 + 0.5)
    return {"seconds": micros // 1_000_000, "microseconds": micros % 1_000_000}


def _required(job: JobFacts) -> Document:
    mem = job.mem_mib // max(1, job.cpus) if job.is_mem_per_cpu else job.mem_mib
    return {
        "CPUs": job.cpus,
        "memory_per_cpu": number(mem if job.is_mem_per_cpu else None),
        "memory_per_node": number(None if job.is_mem_per_cpu else mem),
    }


def _state(row: Row) -> str:
    """The word alone: who cancelled it is in `kill_request_user`."""
    return row.state.partition(" ")[0]


def _killer(uid: int | None) -> str:
    if uid is None:
        return ""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _used(row: Row) -> Document:
    """Slurm calls it `requested`: the largest task's memory in bytes, processor time in thousandths of a second."""
    most: list[Document] = []
    mean: list[Document] = []
    total: list[Document] = []
    if row.cpu_s is not None:
        total.append(_one("cpu", row.cpu_s * 1000))
        mean.append(_one("cpu", row.cpu_s * 1000 / max(1, row.tasks)))
        if row.tasks == 1:
            most.append({**_one("cpu", row.cpu_s * 1000), "task": 0, "node": row.job.node})
    if row.peak_bytes is not None:
        task = 0 if row.step is None else row.step.peak_task
        most.append({**_one("mem", row.peak_bytes), "task": task, "node": row.job.node})
        average = row.peak_bytes if row.step is None else row.step.peak_mean
        if average is not None:
            mean.append(_one("mem", average))
        if row.tasks == 1:
            total.append(_one("mem", row.peak_bytes))
    return {"max": most, "min": most if row.tasks == 1 else [], "average": mean, "total": total}


def _one(kind: str, count: float) -> Document:
    return {"type": kind, "name": "", "id": TRES_IDS[kind], "count": int(count)}


def _held(row: Row) -> list[Document]:
    mem = row.step_spec.get("mem_bytes")
    mib = row.job.mem_mib if mem is None else -(-mem // (1 << 20))
    pairs = [("cpu", str(row.cpus)), ("node", "1")] + ([("mem", "")] if mib else [])
    return tres(pairs, mib)
