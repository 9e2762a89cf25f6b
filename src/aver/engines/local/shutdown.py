"""Whether the machine is being shut down, or this user logged out: then jobs end, and it is not their fault.

Asked of systemd and logind, at the moment when something of ours was ended by a signal. Without systemd nobody says.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from aver.engines.local.login import kills_user_processes
from aver.model.evidence import Stop

ASK_S = 10
SYSTEMD = "/run/systemd/system"  # there where systemd runs
_SENT = (signal.SIGTERM, signal.SIGHUP)  # by systemd, also to what is started in a scope while it is being stopped
_SESSION = re.compile(r"/session-([0-9a-zA-Z]+)\.scope")


def find_stop() -> Stop | None:
    """What is being stopped at this moment; None: nothing, or nobody says. May take three times ASK_S."""
    if not os.path.isdir(SYSTEMD):
        return None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SENT)  # children have it so from their first instruction on
    try:
        return stop_of(_say, _own_cgroup(), kills_user_processes)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop_of(say: Callable[..., str], cgroup: str, kills: Callable[[], bool]) -> Stop | None:
    """The same from the answers: of the service managers, and of logind about the session that the cgroup names.

    A session is closing for as long as something of it runs, which may be days. Only where logind kills what a session
    leaves behind does that say who ended something.
    """
    if say("systemctl", "is-system-running") == "stopping":
        return Stop.SHUTDOWN
    if say("systemctl", "--user", "is-system-running") == "stopping":
        return Stop.LOGOUT
    session = _SESSION.search(cgroup)
    if session is None or say("loginctl", "show-session", session[1], "--property=State", "--value") != "closing":
        return None
    return Stop.LOGOUT if kills() else None


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
