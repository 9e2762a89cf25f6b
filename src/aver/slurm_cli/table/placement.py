"""What a batch job asked for of its nodes and whom it shares them with, as squeue and scontrol show it.

On one machine it changes nothing but `--exclusive`, which is obeyed.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli import texts

if TYPE_CHECKING:
    from aver.slurm_cli.job_facts import JobFacts

MIB = 1 << 20


def over_subscribe(job: JobFacts) -> str:
    if "exclusive" in job.named:
        return str(job.named["exclusive"]).upper() or "NO"
    return "YES" if _asked(job, "oversubscribe") is not None else "OK"


def contiguous(job: JobFacts) -> str:
    return "0" if _asked(job, "contiguous") is None else "1"


def min_tmp_disk(job: JobFacts) -> str:
    asked = _asked(job, "tmp") or "0"
    if asked == "0":
        return "0"
    from aver.model.units import parse_size  # hardly any job asks for it

    return texts.size(parse_size(asked) // MIB, "M")


def min_cpus(job: JobFacts) -> int:
    return max(int(_asked(job, "mincpus") or 0), int(job.cpus_per_task))


def _asked(job: JobFacts, name: str) -> str | None:
    """The value of an option of sbatch, empty for a flag; None: it was not given."""
    for word in job.spec.get("slurm_options", ()):
        option, _, value = str(word).partition("=")
        if option == f"--{name}":
            return value
    return None
