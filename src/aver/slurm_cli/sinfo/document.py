"""This machine as `sinfo --json` lays it out: one element for the node in its partition."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import CLUSTER, VERSION
from aver.slurm_cli.documents import number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aver.slurm_cli.documents import Document
    from aver.slurm_cli.machine import Line


def sinfo_document(lines: Iterable[Line]) -> Document:
    return {"sinfo": [_element(line) for line in lines if line.has_node]}


def _element(line: Line) -> Document:
    node = line.node
    load = round(float(node.load) * 100)
    return {
        "port": 0,
        "node": {"state": [node.state.upper()]},
        "nodes": {
            "allocated": line.count("allocated"),
            "idle": line.count("idle"),
            "other": 0,
            "total": line.count("all"),
            "hostnames": [node.host],
            "addresses": [node.name],
            "nodes": [node.name],
        },
        "cpus": {
            "allocated": min(node.used_cpus, node.cpus),
            "idle": node.free_cpus,
            "other": 0,
            "total": node.cpus,
            "minimum": node.cpus,
            "maximum": node.cpus,
            "load": _same(load),
            "per_node": {"max": number(None, is_infinite=True)},
        },
        "sockets": _same(1),
        "cores": _same(node.cpus),
        "threads": _same(1),
        "disk": _same(0),
        "memory": {
            **_same(node.mem_mib),
            "free": {"minimum": number(node.free_mem_mib), "maximum": number(node.free_mem_mib)},
            "allocated": node.used_mem_mib,
        },
        "weight": _same(1),
        "features": {"total": "", "active": ""},
        "gres": {
            "total": f"gpu:{node.gpus}" if node.gpus else "",
            "used": f"gpu:{node.used_gpus}" if node.gpus else "",
        },
        "cluster": CLUSTER,
        "comment": "",
        "extra": "",
        "reason": {"description": "", "time": number(None), "user": ""},
        "reservation": "",
        "partition": _partition(line),
        "version": VERSION.split()[-1],
    }


def _same(value: int) -> Document:
    return {"minimum": value, "maximum": value}


def _partition(line: Line) -> Document:
    node = line.node
    unlimited = number(None, is_infinite=True)
    return {
        "name": node.partition,
        "cluster": CLUSTER,
        "nodes": {"allowed_allocation": "", "configured": node.name, "total": 1},
        "accounts": {"allowed": "", "deny": ""},
        "groups": {"allowed": ""},
        "qos": {"allowed": "", "deny": "", "assigned": ""},
        "alternate": "",
        "tres": {"billing_weights": "", "configured": f"cpu={node.cpus},mem={node.mem_mib}M,node=1"},
        "cpus": {"task_binding": 0, "total": node.cpus},
        "defaults": {"memory_per_cpu": 0, "time": number(None), "job": ""},
        "grace_time": 0,
        "maximums": {"cpus_per_node": unlimited, "memory_per_cpu": 0, "nodes": number(1), "time": unlimited},
        "minimums": {"nodes": 0},
        "node_sets": "",
        "priority": {"job_factor": 1, "tier": 1},
        "timeouts": {"resume": number(None), "suspend": number(None)},
        "partition": {"state": ["UP"]},
        "suspend_time": number(None),
    }
