"""Whether the machine is being shut down, or this user logged out: who ends our processes then is no job's fault.

Asked of systemd and logind, at the moment when something of ours was ended by a signal. Without systemd nobody says.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from aver.model.evidence import Stop

ASK_S = 10
_SESSION = re.compile(r"/session-([0-9a-zA-Z]+)\.scope")


def find_stop() -> Stop | None:
    """What is being stopped at this moment; None: nothing, or nobody says."""
    if not os.path.isdir("/run/systemd/system"):
        return None
    if _say("systemctl", "is-system-running") == "stopping":
        return Stop.SHUTDOWN
    if _say("systemctl", "--user", "is-system-running") == "stopping":
        return Stop.LOGOUT
    session = _SESSION.search(_own_cgroup())
    if session is not None and _say("loginctl", "show-session", session[1], "--property=State", "--value") == "closing":
        return Stop.LOGOUT
    return None


def _say(*command: str) -> str:
    """One word of an answer; empty where there is none."""
    own = {**os.environ, "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_S,
            env=own,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _own_cgroup() -> str:
    try:
        return Path("/proc/self/cgroup").read_text()
    except OSError:
        return ""
