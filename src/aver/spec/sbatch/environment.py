"""The environment of a batch job: what --export and its like let through. Pure.

The variables that Slurm sets for the job itself are added when it starts; those of an outer job are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.spec.sbatch.options import Values

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
_LOGIN = ("HOME", "LOGNAME", "SHELL", "USER", "LANG", "TERM", "TMPDIR", "AVER_HOME", "AVER_CONFIG", "XDG_STATE_HOME")
_OUTER = re.compile(
    r"SLURM_(JOB|ARRAY|STEP|TASK|NTASKS|NPROCS|NNODES|NODE|CPUS|MEM_PER|GTIDS|PROCID|LOCALID|RESTART|SUBMIT|SRUN|LAUNCH"
    r"|UMASK|PRIO|OPEN_MODE|CLUSTER_NAME|EXPORT_ENV|GET_USER_ENV|GPUS|HOSTFILE|THREADS|OVERCOMMIT|DISTRIBUTION).*"
    r"|SLURMD_NODENAME|AVER_(KEY|RUN|JOB|JOB_NAME|ATTEMPT|CPUS)|ENVIRONMENT|SBATCH_.*"
)


def environment_of(values: Values, environ: Mapping[str, str]) -> list[str]:
    """NAME=VALUE of all that the job inherits, and of what --export sets."""
    text = values.said.get("export", "ALL")
    names = [part for part in text.split(",") if part]
    chosen = dict(environ) if "ALL" in names else _login(environ)
    for name in names:
        if "=" not in name and name in environ:
            chosen[name] = environ[name]
    kept = {name: value for name, value in chosen.items() if not _OUTER.fullmatch(name)}
    kept.update(values.env)
    if names != ["ALL"]:
        kept["SLURM_EXPORT_ENV"] = text
    if "ALL" not in names:
        kept["SLURM_GET_USER_ENV"] = "1"
    return [f"{name}={value}" for name, value in kept.items()]


def _login(environ: Mapping[str, str]) -> dict[str, str]:
    """What a login would give: little, and nothing of the submitter's shell."""
    return {"PATH": _PATH} | {name: environ[name] for name in _LOGIN if name in environ}
