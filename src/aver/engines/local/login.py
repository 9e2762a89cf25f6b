"""What a logout does to jobs: whether it ends them, and the command that prevents that.

systemd ends the user's service manager, and all that runs below it, with the user's last session, unless the user
lingers. Where logind is set to KillUserProcesses=yes it ends what a session left behind as well.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from aver.engines.local.capabilities import Machine, is_below_manager
from aver.engines.local.user_manager import Obstacle, find_obstacle, user_name

LINGER = Path("/var/lib/systemd/linger")
POLKIT = Path("/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service")
LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
ASK_S = 10


def has_linger() -> bool:
    return (LINGER / user_name()).exists()


def may_linger() -> bool:
    """Whether this user may say so: without polkit only root may."""
    return POLKIT.exists() or os.getuid() == 0


def linger_command() -> str:
    """The command with which this user lingers."""
    return "loginctl enable-linger" if may_linger() else f"sudo loginctl enable-linger {user_name()}"


def ends_at_logout(pid: int | None) -> Obstacle | None:
    """Why jobs of the coordinator with this pid end when their user logs out; None: they don't, or nobody says.

    Without a pid: of a coordinator that this process would start. Lingering keeps the service manager, not a session.
    """
    if not os.path.isdir("/run/systemd/system"):
        return None
    process = "self" if pid is None else str(pid)
    if is_below_manager(Machine(process=process)) or (pid is None and find_obstacle() is None):
        if has_linger():
            return None
        what = f"{user_name()} does not linger, and jobs run below {user_name()}'s service manager"
        return Obstacle(what, f"`{linger_command()}`")
    if "/session-" in _cgroup(process) and kills_user_processes():
        return Obstacle("logind is set to KillUserProcesses=yes", _way_out())
    return None


def _way_out() -> str:
    """How a coordinator in a session gets below the service manager of a user that lingers."""
    if not has_linger():
        return f"`{linger_command()}`"
    obstacle = find_obstacle()
    return "`aver stop`: the next one runs below your service manager" if obstacle is None else obstacle.remedy


def kills_user_processes() -> bool:
    """What logind says; False where it does not answer."""
    try:
        done = subprocess.run(
            ["busctl", "get-property", *LOGIND, "KillUserProcesses"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ASK_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == "b true"


def _cgroup(process: str) -> str:
    try:
        return Path(f"/proc/{process}/cgroup").read_text()
    except OSError:
        return ""
