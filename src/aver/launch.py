"""The program of a coordinator, and the environment that it is started with.

Clients start it, the service does, and a witness that finds that its coordinator died: all with these words.
"""

from __future__ import annotations

import os
import sys

RESTART = "AVER_RESTART"  # "no": a coordinator that died is started by the next command alone
_OWN = ("AVER_KEY", "AVER_JOB", "AVER_RUN", "AVER_ATTEMPT", "AVER_JOB_NAME", "AVER_CPUS", "AVER_CONTAINER")


def coordinator_command(home: str) -> list[str]:
    """The words that start a coordinator of this home; one more says to whom it answers (`aver.coordinator`)."""
    return [sys.executable, "-P", "-m", "aver.coordinator", home]


def coordinator_environment() -> dict[str, str]:
    """Our environment, without what is a job's own: started inside a job, the coordinator is none of its processes."""
    kept = {name: value for name, value in os.environ.items() if name not in _OWN and not name.startswith("SLURM_")}
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # whence we were imported
    path = kept.get("PYTHONPATH", "")
    if path.split(os.pathsep)[0] != folder:
        path = f"{folder}{os.pathsep}{path}" if path else folder
    return {**kept, "PYTHONPATH": path}


def restart_command(home: str) -> list[str]:
    """The words with which a witness starts the next coordinator if this one dies; none if nobody wants that."""
    return [] if os.environ.get(RESTART) == "no" else coordinator_command(home)
