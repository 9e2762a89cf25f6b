"""How many threads a program may start: variables that numerical libraries read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

CPUS = "AVER_CPUS"
VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip


@cache
def thread_pairs(whole_cpus: int) -> tuple[str, ...]:
    """NAME=VALUE for a job with this number of CPUs, unless its environment has the name."""
    return tuple(f"{name}={whole_cpus}" for name in VARIABLES)


def without_outer(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of who submits, without the numbers of threads that an enclosing job was given."""
    cpus = environment.get(CPUS, "")
    try:
        given = str(max(1, -int(-float(cpus) // 1)))
    except (ValueError, OverflowError):
        return dict(environment)
    return {name: value for name, value in environment.items() if name not in VARIABLES or value != given}
