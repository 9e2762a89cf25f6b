"""Steps of allocations by their names: which attempt each is, what an order says of one, and the words for people.

A step's name is `wf{run}_j{job}_r{round}_a{attempt}`. Attempt numbers only grow, so job and attempt tell it from all
others, whatever the round. An allocation's name has the run and the home.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

from aver.engines.api import Order
from aver.engines.slurm.allocation.folder import Claim, Size
from aver.engines.slurm.commands.call import Commands, Reply
from aver.engines.slurm.commands.rows import AccountRow
from aver.engines.slurm.submit.sbatch_call import SCOPES

_STEP = re.compile(r"wf[0-9]+_j([0-9]{1,18})_r[0-9]+_a([0-9]{1,9})")
MIB = 1 << 20
Which = tuple[int, int]  # job and attempt


def ask_steps(commands: Commands, jobs: Collection[int], timeout_s: float) -> dict[tuple[int, Which], str]:
    """The ids of the steps that squeue lists of these allocations; without an answer none."""
    listed = ",".join(str(job) for job in sorted(jobs))
    words = ["squeue", "--steps", "--noheader", "--all", "--format=%i %j", f"--jobs={listed}"]
    reply = commands.call(words, timeout_s=timeout_s)
    found = {}
    for line in reply.out.splitlines() if isinstance(reply, Reply) else ():
        number, _, name = line.strip().partition(" ")
        job = number.partition(".")[0]
        which = which_step(name)
        if job.isdecimal() and which is not None:
            found[int(job), which] = number
    return found


def order_lines(order: Order) -> tuple[str, ...]:
    """What the executor must know of an order, beside its name."""
    warning = order.warning
    scope = "a" if warning is None else SCOPES.get(warning.scope, "a")
    signal, lead = (0, 0) if warning is None else (warning.signal, warning.lead_s)
    deadline = 0 if order.deadline_at is None else math.ceil(order.deadline_at)
    exclude = " ".join(order.exclude)
    return order.step, str(order.request.time_s or 0), str(signal), str(lead), scope, str(deadline), exclude


def size_for(order: Order) -> Size:
    mib = 0 if order.request.mem_bytes is None else -(-order.request.mem_bytes // MIB)
    return Size(
        order.request.whole_cpus, mib, order.request.gpus, order.least_s, order.nodes, order.has_steps,
        frozenset(order.exclude),
    )  # fmt: skip


def which_of(key: str) -> tuple[int, int]:
    """Job and attempt, by an attempt's key."""
    parts = key.split(".")
    numbers = [int(part) for part in parts[1:3] if part.isdecimal()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def which_step(name: str) -> Which | None:
    """The same, by a step's name; None: it is not a step of ours."""
    match = _STEP.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def allocation_name(run: int, home: str, ask: str, number: int) -> str:
    """The name that an allocation has at Slurm."""
    return f"aver.{run}.{home}.{ask}.{number}"


def run_of(name: str, home: str) -> int | None:
    """The run of an allocation of this home, by its name; None: it is none."""
    parts = name.split(".")
    is_ours = len(parts) == 5 and parts[0] == "aver" and parts[1].isdecimal() and parts[2] == home
    return int(parts[1]) if is_ours else None


def claim_text(claim: Claim) -> str:
    return f"started in allocation {claim.job} on {claim.node}"


def account_text(rows: Sequence[AccountRow], job: AccountRow | None) -> str:
    words = [f"step {row.step} {row.word} {row.exit}" for row in rows]
    words += [] if job is None else [f"allocation {job.job} {job.word} {job.exit}"]
    return "; ".join(words) or "no row of it"
