"""`srun --mpi`: there is no process manager for MPI here. One task needs none; several would not find each other."""

from __future__ import annotations

import sys

from aver.slurm_cli.srun.options import Options, number
from aver.spec.getopt import BadOption

_KNOWN = ("pmi2", "pmix", "pmix_v1", "pmix_v2", "pmix_v3", "pmix_v4", "pmix_v5", "cray_shasta")
_LIST = "MPI plugin types are...\n\tnone\n"


def check_mpi(options: Options) -> bool:
    """False when the types were only to be listed; BadOption for one that there is not."""
    kind = options.get("mpi") or ""
    if kind in ("list", "help"):
        sys.stdout.write(_LIST)
        return False
    if kind == "none":
        return True
    if kind not in _KNOWN:
        lines = (
            f"error: Couldn't find the specified plugin name for mpi/{kind} looking at all files",
            f"error: cannot find mpi plugin for mpi/{kind}",
            f"error: MPI: Cannot create context for mpi/{kind}",
            "error: MPI: Unable to load any plugin",
            f"error: Invalid MPI type '{kind}', --mpi=list for acceptable types",
        )
        raise BadOption("\nsrun: ".join(lines))
    tasks = number(options.get("ntasks"), "ntasks") or number(options.get("ntasks-per-node"), "ntasks-per-node") or 1
    if tasks > 1:
        raise BadOption(f"error: --mpi={kind} is not served on one machine: start the ranks with mpirun inside the job")
    return True
