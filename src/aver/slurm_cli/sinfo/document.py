"""This machine as `sinfo --json` and `scontrol show node|partition --json` lay it out."""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import CLUSTER
from aver.slurm_cli.documents import number
from aver.slurm_cli.settings import version_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aver.slurm_cli.documents import Document
    from aver.slurm_cli.machine import Line, Node

_NO_TEXT = (
    "burstbuffer_network_address", "specialized_cpus", "extra", "instance_id", "instance_type", "mcs_label", "owner",
    "comment", "reason", "reason_set_by_user", "reservation",
)  # fmt: skip
_NO_TIMES = ("last_busy", "reason_changed_at", "resume_after")


def sinfo_document(lines: Iterable[Line], shape: int) -> Document:
    return {"sinfo": [_element(line, shape) for line in lines if line.has_node]}


def nodes_document(nodes: Iterable[Node], now: float, shape: int) -> Document:
    return {"nodes": [_node(node, shape) for node in nodes], "last_update": number(now)}


def partitions_document(nodes: Iterable[Node], now: float, shape: int) -> Document:
    return {"partitions": [_partition(node, shape) for node in nodes], "last_update": number(now)}


def _node(node: Node, shape: int) -> Document:
    """What is not measured is empty or not `set`; the node has one board with one socket, as `sinfo` says."""
    system = os.uname()
    gres = f"gpu:{node.gpus}" if node.gpus else ""
    gpu = f",gres/gpu={node.gpus}" if node.gpus else ""
    used = f"cpu={node.used_cpus}" + (f",mem={node.used_mem_mib}M" if node.used_mem_mib else "")
    found: Document = dict.fromkeys(_NO_TEXT, "") | {name: number(None) for name in _NO_TIMES}
    found |= {
        "architecture": system.machine,
        "boards": 1,
        "boot_time": number(node.booted_at),
        "cluster_name": CLUSTER,
        "cores": node.cpus,
        "specialized_cores": 0,
        "cpu_binding": 0,
        "cpu_load": round(float(node.load) * 100),
        "free_mem": number(node.free_mem_mib),
        "cpus": node.cpus,
        "effective_cpus": node.cpus,
        "energy": {},
        "external_sensors": {},
        "power": {},
        "features": [],
        "active_features": [],
        "gres": gres,
        "gres_drained": "N/A",
        "gres_used": f"gpu:{node.used_gpus}" if node.gpus else "",
        "specialized_memory": 0,
        "name": node.name,
        "next_state_after_reboot": ["INVALID"],
        "address": node.name,
        "hostname": node.host,
        "state": [node.state.upper()],
        "operating_system": f"{system.sysname} {system.release} {system.version}",
        "partitions": [node.partition],
        "port": 0,
        "real_memory": node.mem_mib,
        "slurmd_start_time": number(node.booted_at),
        "sockets": 1,
        "threads": 1,
        "temporary_disk": 0,
        "weight": 1,
        "tres": f"cpu={node.cpus},mem={node.mem_mib}M,billing={node.cpus}{gpu}",
        "tres_used": used if node.used_cpus else "",
        "tres_weighted": 0.0,
        "alloc_memory": node.used_mem_mib,
        "alloc_cpus": min(node.used_cpus, node.cpus),
        "alloc_idle_cpus": node.free_cpus,
        "version": version_line().split()[-1],
    }
    if shape >= 41:
        found |= {"gpu_spec": "", "res_cores_per_gpu": 0}
    if shape >= 43:
        found |= {"tls_cert_last_renewal": number(None), "cert_flags": [], "topology": ""}
    if shape >= 45:
        found["suspend_time"] = number(None)
        for name in ("external_sensors", "power", "tres_weighted"):
            del found[name]
    return dict(sorted(found.items()))


def _element(line: Line, shape: int) -> Document:
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
        "reason": {"description": "", "time": 0, "user": ""},
        "reservation": "",
        "partition": _partition(node, shape),
        **({"resource_spec": {"cpus": "", "memory": 0}} if shape >= 42 else {}),
    }


def _same(value: int) -> Document:
    return {"minimum": value, "maximum": value}


def _partition(node: Node, shape: int) -> Document:
    unlimited, unset = number(None, is_infinite=True), number(None)
    memory = {"partition_memory_per_cpu": unset, "partition_memory_per_node": unlimited}
    found: Document = {
        "name": node.partition,
        "cluster": CLUSTER,
        "nodes": {"allowed_allocation": "", "configured": node.name, "total": 1},
        "accounts": {"allowed": "", "deny": ""},
        "groups": {"allowed": ""},
        "qos": {"allowed": "", "deny": "", "assigned": ""},
        "alternate": "",
        "tres": {"billing_weights": "", "configured": f"cpu={node.cpus},mem={node.mem_mib}M,node=1"},
        "cpus": {"task_binding": 0, "total": node.cpus},
        "defaults": {"memory_per_cpu": 0, **memory, "time": unset, "job": ""},
        "grace_time": 0,
        "maximums": {
            "cpus_per_node": unlimited,
            "cpus_per_socket": unlimited,
            "memory_per_cpu": 0,
            **memory,
            "nodes": number(1),
            "shares": 1,
            "oversubscribe": {"jobs": 1, "flags": []},
            "time": unlimited,
            "over_time_limit": unset,
        },
        "minimums": {"nodes": 0},
        "node_sets": "",
        "priority": {"job_factor": 1, "tier": 1},
        "timeouts": {"resume": unset, "suspend": unset},
        "partition": {"state": ["UP"]},
        "suspend_time": unset,
    }
    if shape >= 41:
        found["select_type"] = []
    if shape >= 43:
        found["topology"] = ""
    if shape >= 45:
        found["flags"] = ["DEFAULT"]
        found["preempt_mode"] = ["DISABLED"]
        found["partition"] |= {"exclusive": "NO", "oversubscribe": "NO"}
    return found
