"""ExitCode as Slurm's commands print it, from plain numbers.

Apart from `render.verdict`, which uses it, so that commands that are called in loops need not load the rest.
"""

from __future__ import annotations

UNKNOWN = "?"
OUTPUT_CANT_BE_OPENED = "0:53"  # Slurm's own code, not signal 53
SLURM_OUT_OF_MEMORY = "0:125"  # likewise

_STREAMS = ("stdin", "stdout", "stderr")
_RAN = ("COMPLETED", "FAILED", "TIMEOUT", "CHECKPOINTED", "UNVERIFIED")  # what ended so had an exit, known or not


def raw_text(raw: int | None) -> str:
    """A raw wait status as `code:signal`; also DerivedExitCode, whose 0:125 is not a signal."""
    return UNKNOWN if raw is None else f"{raw >> 8}:{raw & 0x7F}"


def slurm_exit(state: str, raw: int | None, launch: tuple[str, int] | None = None) -> str:
    """Two numbers, `0:0` where nothing ran or the engine lost it, as Slurm has it, `?` where unknown.

    `launch`: the operation that failed, and errno.
    """
    if state == "OUT_OF_MEMORY":
        return SLURM_OUT_OF_MEMORY
    if raw is not None:
        return raw_text(raw)
    if launch is not None:
        operation, errno = launch
        return OUTPUT_CANT_BE_OPENED if operation in _STREAMS else f"{errno & 0xFF}:0"
    if state == "DEADLINE":
        return "0:1"
    return UNKNOWN if state in _RAN else "0:0"


def step_warning(label: str, ended_as: str | None, derived: int | None, *, is_job_seen: bool) -> str:
    """`step 7.0 (python3) was out of memory`: what the verdict on a step's job does not show; empty for most steps.

    `ended_as` is None while it runs. Where nobody saw the job's own end either, its verdict says so.
    """
    if ended_as == "OUT_OF_MEMORY":
        return f"step {label} was out of memory"
    is_unseen = ended_as is not None and derived is None
    return f"step {label} ended unseen; exit code unknown" if is_unseen and is_job_seen else ""
