"""Orders to a witness as bytes. The protocol is `docs/design/witness.md`.

Pure encoding: nothing is sent here.
"""

from __future__ import annotations

import math
import os
import resource
import struct
from collections.abc import Sequence
from functools import lru_cache

from aver.engines.api import Control, Heard, Order
from aver.engines.local.capabilities import CgroupBase
from aver.engines.local.job_cgroup import levels
from aver.engines.local.mark import RLIMIT_LOCKS, can_mark, mark_of
from aver.model.evidence import Resumed, Suspended
from aver.model.job import Scope
from aver.model.record import Record

FRAME_LIMIT_BYTES = 8 << 20
_SCOPES = {Scope.ALL: "a", Scope.PROGRAM: "p", Scope.SCRIPT: "b", None: "a"}
_VERBS = {
    "cancel": "C", "time_out": "C", "signal": "S", "suspend": "P", "resume": "U", "limit": "T", "job_limit": "T",
}  # fmt: skip
REFUSALS = frozenset(
    {
        "a job runs",
        "an order without a key",
        "an order without a program",
        "malformed frame",
        "unknown or malformed field in a run order",
    }
)  # of run orders; docs/design/witness.md
SRUN_BYTES = 48 << 20  # of an srun outside of a job, with its interpreter: 25 MiB were seen
RLIMITS = {"none": None, "data": resource.RLIMIT_DATA, "as": resource.RLIMIT_AS}


class Bounds(Record):
    """What the settings allow each job, beside its own request."""

    processes: int | None = None  # at once, where there is cgroup v2
    rlimit: int | None = None  # where memory can only be sampled: the limit by which each process has the job's `mem`


def run_frame(
    order: Order, cgroup: CgroupBase | None, of_witness: str, durable_offset: int, place: Sequence[str] = (),
    bounds: Bounds = Bounds(), of_job: str = "",
) -> bytes:  # fmt: skip
    """The frame that starts the order; `of_witness` is the witness's own cgroup, `of_job` that of a task's job.

    `place` are fields that the order's own environment may replace.
    ValueError if a field holds a NUL or the frame is too large.
    """
    fields = [
        "Q" if order.is_behind else "R",
        "k" + order.key,
        "d" + order.folder,
        f"j{durable_offset}",
        f"u{order.umask:o}",
    ]
    if order.env_file is not None:
        fields.append("e" + order.env_file)
    fields += place
    fields += ["E" + pair for pair in order.env]
    fields += ["v" + pair for pair in order.env_defaults]
    for tag, name in (("i", order.stdin), ("o", order.stdout), ("r", order.stderr)):
        if name is not None:
            fields.append(tag + name)
    if order.append:
        fields.append("A")
    if order.own_parts:
        fields.append(f"O{order.own_parts}")
    if order.streams:
        fields.append("F")
    if order.is_elsewhere:
        fields.append("x1")
    fields += _limit_fields(order.limits)
    if can_mark():
        fields.append(f"l{RLIMIT_LOCKS} {mark_of(order.key)} -1")
    request = order.request
    if request.time_s is not None:
        fields.append(f"t{request.time_s * 1000}")
    if order.job_due_s is not None:
        fields.append(f"D{_milliseconds(order.job_due_s)}")
    warning = order.warning
    if warning is not None and warning.scope is not Scope.STEPS:  # without a limit the witness never gives it
        fields.append(f"w{warning.signal} {warning.lead_s * 1000} {_SCOPES[warning.scope]}")
    own = request.mem_bytes
    if order.is_srun and own is not None:  # of its tasks; where they can only be sampled, our srun counts with them
        own = None if cgroup is not None else own + SRUN_BYTES
    limits = [limit for limit in (own, order.job_mem_bytes) if limit is not None]
    if limits:
        fields.append(f"m{min(limits)}")
        if cgroup is None and bounds.rlimit is not None:
            fields.append(f"l{bounds.rlimit} {_lower(order, bounds.rlimit, min(limits))}")
    if cgroup is not None:
        counts = cgroup.version == 2 and bounds.processes is not None
        fields += [f"g{cgroup.version} {cgroup.folder}", "G" + of_witness]
        fields += [f"L{limit} {name}" for limit, name in levels(order, counts, of_job)]
        if counts:
            fields.append(f"n{bounds.processes}")
    fields.append(f"K{int(order.kill_wait_s * 1000)}")
    fields += ["f" + file for file in order.files]
    if order.clean:
        fields.append("c" + order.clean)
    if order.stderr_name:
        fields.append("J" + order.stderr_name)
    fields += ["W" + word for word in order.warm]
    fields += ["b" + word for word in order.bare]
    fields += ["a" + argument for argument in order.args]
    return _frame(fields)


@lru_cache(maxsize=32)
def _limit_fields(limits: tuple[tuple[int, int, int], ...]) -> tuple[str, ...]:
    """The same for all jobs of a submission."""
    return tuple(f"l{number} {soft} {hard}" for number, soft, hard in limits)


def _lower(order: Order, number: int, mem_bytes: int) -> str:
    """The soft and the hard limit: those that it would have, if they are lower."""
    own = next(((soft, hard) for one, soft, hard in order.limits if one == number), (-1, -1))
    return " ".join(str(mem_bytes if one < 0 else min(one, mem_bytes)) for one in own)


def control_frame(control: Control) -> bytes:
    fields = [_VERBS[control.verb], "k" + control.key]
    if control.verb == "signal":
        fields += [f"s{control.signal}", "c" + _SCOPES[control.scope]]
    elif control.verb == "cancel" and control.signal:
        fields.append(f"s{control.signal}")
    elif control.verb == "limit":
        fields.append("t" if control.time_s is None else f"t{control.time_s * 1000}")
    elif control.verb == "job_limit":
        fields.append("D" if control.due_s is None else f"D{_milliseconds(control.due_s)}")
    elif control.verb == "time_out":
        fields.append("D")
    if control.is_requeue:
        fields.append("q")
    return _frame(fields)


def heard_of_earlier(control: Control) -> Heard | None:
    """A witness of an earlier version obeys as well, but does not say when it has stopped or continued its job."""
    said = "its witness is of an earlier version, which does not say when that is done"
    if control.verb == "suspend":
        return Heard(control.key, "engine", said, Suspended(0.0))
    return Heard(control.key, "engine", said, Resumed(0.0)) if control.verb == "resume" else None


def companion_frame(key: str, witness_pid: int) -> bytes:
    """The memory of what this witness runs, a task, counts in that of the attempt with this key."""
    return _frame(["N", "k" + key, f"p{witness_pid}"])


def _milliseconds(due_s: float) -> int:
    """Rounded up: never before it is due."""
    return math.ceil(due_s * 1000)


def _frame(fields: list[str]) -> bytes:
    body = os.fsencode("\0".join(fields)) + b"\0"
    if body.count(b"\0") != len(fields):
        raise ValueError("an argument, a name or an environment value holds a NUL byte")
    if len(body) > FRAME_LIMIT_BYTES:
        raise ValueError(f"arguments of {len(body)} bytes are more than the {FRAME_LIMIT_BYTES} that fit in an order")
    return struct.pack("<I", len(body)) + body
