"""A cgroup for the jobs of an ordinary user, from the user's own service manager (`systemd --user`).

A login shell lives in a cgroup of root's, `session-N.scope`, in which nobody else may make one. Below
`user@UID.service` systemd gives the user the memory controller. So the coordinator asks that manager for a scope of
its own in `aver.slice`, one for each home: the coordinator and its witnesses are in the leaf `coordinator` of it, each
job's cgroup is beside that. A coordinator that comes back enters the scope that its jobs are in. systemd removes the
scope with its last process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from aver.engines.local.capabilities import (
    LEAF,
    Machine,
    delegated_cgroup,
    make_leaf,
    memory_failure,
    own_scope,
    unified_cgroup,
)
from aver.model.record import Record

SLICE = "aver.slice"
CALL_S = 20
MOVE_S = 20.0
TRIES = 5
PAUSE_S = 0.05
NO_TASK_LIMIT = str((1 << 64) - 1)
DELEGATE = (
    "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=yes\\n' | "
    "sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload"
)
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")


class Obstacle(Record):
    """The one thing that is missing, and the command, or what else can be done, that gives it."""

    what: str
    remedy: str


def scope_of(home: Path) -> str:
    """The name of the scope of this home's jobs."""
    return f"aver-{hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:12]}.scope"


def enter_scope(home: Path, machine: Machine = Machine()) -> Obstacle | None:
    """Put this process into the home's scope, unless it has a delegated cgroup already; return why it can't be.

    None on machines without a unified hierarchy too: there is nothing that the manager could give.
    """
    name = scope_of(home)
    scope = own_scope(machine)
    if (scope is not None and scope.name == name) or unified_cgroup(machine) is None:
        return None
    if scope is None and delegated_cgroup(machine) is not None:
        return None
    return find_obstacle(machine) or _move(os.getpid(), name, machine)


def probe_manager(machine: Machine = Machine()) -> Obstacle | None:
    """Try with a process that is made for it whether `enter_scope` would work. Leaves nothing behind."""
    obstacle = find_obstacle(machine)
    if obstacle is not None:
        return obstacle
    child = subprocess.Popen(
        ["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )  # waits for its input to end
    try:
        name = f"aver-{os.urandom(6).hex()}.scope"
        return _move(child.pid, name, Machine(machine.proc, machine.dev, str(child.pid)))
    finally:
        child.communicate()


def find_obstacle(machine: Machine = Machine()) -> Obstacle | None:
    """The one thing that keeps the user's manager from giving a cgroup, as far as files tell."""
    unified = unified_cgroup(machine)
    if unified is None:
        return Obstacle("no cgroup v2 hierarchy is mounted", "boot with systemd.unified_cgroup_hierarchy=1")
    if "memory" not in _words(unified / "cgroup.controllers"):
        return Obstacle("the kernel has no memory controller", "boot with cgroup_enable=memory")
    if not os.path.isdir("/run/systemd/system"):
        return Obstacle("systemd does not run here", "run as root, or in a cgroup that is delegated to you")
    obstacle = find_manager_obstacle()
    if obstacle is not None:
        return obstacle
    manager = unified / "user.slice" / f"user-{os.getuid()}.slice" / f"user@{os.getuid()}.service"
    if manager.is_dir() and "memory" not in _words(manager / "cgroup.controllers"):
        return Obstacle(
            f"systemd does not delegate the memory controller to {user_name()}'s service manager",
            f"`{DELEGATE}`, then log in again",
        )
    return None


def find_manager_obstacle() -> Obstacle | None:
    """What keeps the user's service manager from being asked, where systemd runs."""
    if shutil.which("busctl") is None:
        return Obstacle("busctl, a program of systemd, is missing", "install systemd's programs")
    user, runtime = user_name(), runtime_folder()
    if not os.path.exists(runtime / "systemd" / "private"):
        return Obstacle(
            f"no service manager of {user} runs (systemd --user)", f"`sudo loginctl enable-linger {user}` starts it"
        )
    if not os.path.exists(runtime / "bus"):
        return Obstacle(
            f"{user}'s service manager has no bus", "`sudo apt install dbus-user-session`, then log in again"
        )
    return None


def runtime_folder() -> Path:
    return Path(f"/run/user/{os.getuid()}")


def user_name() -> str:
    import pwd

    with contextlib.suppress(KeyError):
        return pwd.getpwuid(os.getuid()).pw_name
    return str(os.getuid())


def _move(pid: int, name: str, machine: Machine) -> Obstacle | None:
    """Put the process into the scope's leaf, and see to it that cgroups beside that have the memory controller."""
    problem = _ask_for(pid, name, machine)
    if problem is None:
        problem = _arrive(name, machine) or memory_failure(machine)
    return None if problem is None else Obstacle(problem, f"`systemctl --user status {name}` shows more")


def _ask_for(pid: int, name: str, machine: Machine) -> str | None:
    """Have the process in a new scope of this name, or in the one that is there; return why it can't be."""
    properties = ("Description", "s", "Jobs of Aver", "Slice", "s", SLICE, "Delegate", "b", "true",
                  "TasksMax", "t", NO_TASK_LIMIT, "PIDs", "au", "1", str(pid))  # fmt: skip
    problem = None
    for _ in range(TRIES):  # the scope of a coordinator that just left is neither there nor gone
        problem = _call("StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", "5", *properties, "0")
        if problem is None or _call("AttachProcessesToUnit", "ssau", name, f"/{LEAF}", "1", str(pid)) is None:
            return None
        scope = own_scope(machine)
        if scope is not None and scope.name == name:  # the manager was slow, and carried it out after all
            return None
        time.sleep(PAUSE_S)
    return problem


def _call(method: str, signature: str, *arguments: str) -> str | None:
    """Call a method of the user's manager; return what it answered if it refused."""
    address = f"--address=unix:path={runtime_folder()}/bus"
    return _run(["busctl", address, "call", *_MANAGER, method, signature, *arguments])


def _run(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the user's service manager does not answer ({error})"
    return None if done.returncode == 0 else f"the user's service manager refused: {done.stderr.strip()}"


def _arrive(name: str, machine: Machine) -> str | None:
    """Wait until the process is in the scope, and put it into the leaf."""
    deadline = time.monotonic() + MOVE_S
    while True:
        scope = own_scope(machine)
        if scope is not None and scope.name == name:
            return make_leaf(scope, machine)
        if time.monotonic() > deadline:
            return f"{name} was started, and its process is not in it"
        time.sleep(PAUSE_S)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
