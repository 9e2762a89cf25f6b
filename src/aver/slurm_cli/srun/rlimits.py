"""The limits (`ulimit`) that the tasks of a step have from the process that calls srun."""

from __future__ import annotations

import resource

from aver.spec.getopt import BadOption

PROPAGATED = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")


def own_limits(names: str | None) -> list[list[int]]:
    """Our soft limits, which the tasks get: those that --propagate names, or all; BadOption has Slurm's sentences."""
    chosen: list[str] = []
    for word in (names or "ALL").split(","):
        name = word.upper().removeprefix("RLIMIT_")
        if name == "ALL":
            chosen += PROPAGATED
        elif name in PROPAGATED:
            chosen.append(name)
        elif name != "NONE":
            raise BadOption(f"error: Bad rlimit name: {word}\nsrun: error: --propagate={names} is not valid.")
    numbers = sorted({int(getattr(resource, f"RLIMIT_{name}")) for name in chosen})
    return [[number, resource.getrlimit(number)[0]] for number in numbers]
