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
RELEASES = {
    "22.05": "22.05.8", "23.02": "23.02.8", "23.11": "23.11.11", "24.05": "24.05.8", "24.11": "24.11.7",
    "25.05": "25.05.8", "25.11": "25.11.6",
}  # fmt: skip
"""The releases of Slurm that the commands may be (`slurm.version`), each with the version that they print."""
NEWEST = "25.11"
ANY_NAMES, KNOWN_NAMES = "any", "known"  # of `slurm.names`: what becomes of names that this machine has not
HIGHEST_INDEX = 1000  # of an array: MaxArraySize is 1001, as usual
STEP_CANCEL = "cancel step"  # what a person asked for with `scancel JOB.STEP`
STEP_UPDATE = "update step"  # likewise with `scontrol update StepId=JOB.STEP`
STEP_WAIT = "step wait"  # --wait of an srun: the time that it gives after the first task's end has passed

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


_SLUID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_SLUID_CLUSTER = 2  # Slurm gives its clusters 2 to 4095
_SLUID_LENGTH = 14


def sluid(number: int, attempt: int) -> str:
    """The id of one attempt in the form of Slurm 25.11's: `s`, then 64 bits in Crockford's base 32.

    In Slurm the bits below the cluster's 12 are 42 of a time and 10 of a count, here the job's number and the attempt.
    """
    bits = _SLUID_CLUSTER << 52 | (number & ((1 << 42) - 1)) << 10 | attempt & 0x3FF
    return "s" + "".join(_SLUID_DIGITS[bits >> 5 * place & 31] for place in range(12, -1, -1))


def number_of_sluid(text: str) -> int | None:
    """The number of the job that has this id; None for any other text."""
    if len(text) != _SLUID_LENGTH or text[0] not in "sS" or not text.isascii():
        return None
    bits = 0
    for letter in text[1:].upper().translate({ord("O"): "0", ord("I"): "1", ord("L"): "1"}):
        place = _SLUID_DIGITS.find(letter)
        if place < 0:
            return None
        bits = bits << 5 | place
    return bits >> 10 & ((1 << 42) - 1) if bits >> 52 == _SLUID_CLUSTER else None
