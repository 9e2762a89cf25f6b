"""The names under which this machine appears in Slurm's commands and variables, and those of stored options.

Imports nothing: Slurm's commands are called in loops.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

CLUSTER = "aver"
PARTITION = "main"
QOS = "normal"
VERSION = "slurm 22.05.8"  # whose messages and exit statuses the commands have; clients read `slurm MAJOR.MINOR`
HIGHEST_INDEX = 1000  # of an array: MaxArraySize is 1001, as usual
STEP_CANCEL = "cancel step"  # what a person asked for with `scancel JOB.STEP`

_NUMBERS = ("ntasks", "ntasks_per_node", "cpus_per_task", "mem_per_cpu")
_TEXTS = (
    "kind", "command", "partition", "account", "qos", "exclusive", "gres", "licenses", "features", "reservation",
    "nodelist", "exclude", "wckey", "nice",
)  # fmt: skip


def slurm_document(job: dict[str, Any]) -> dict[str, Any] | None:
    """The SlurmOptions of a stored JobSpec, or None. Earlier versions stored them as pairs of text under `facts`."""
    found: dict[str, Any] | None = job.get("slurm")
    if found is not None or not job.get("facts"):
        return found
    pairs: dict[str, str] = dict(job["facts"])
    found = {name: pairs[name] for name in _TEXTS if name in pairs}
    found |= {name: int(pairs[name]) for name in _NUMBERS if pairs.get(name, "").isdecimal()}
    if "requeue" in pairs:
        found["requeue"] = pairs["requeue"] == "1"
    return found
