"""What this machine can enforce, and what it can't and why.

Facts only, found by trying: a cgroup base is reported when a child folder was really made, a
process really moved into it, and the folder removed again. Nothing here changes how jobs are run.

The order: a cgroup that was delegated to this process (a scope of our own below the user's service manager, which
`user_manager` asks for, or one that somebody else prepared), then any that can be written, then sampling.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

from aver.config import Config
from aver.engines.local.cpu_sets import own_cpus
from aver.engines.local.job_cgroup import top_of
from aver.model.record import Record
from aver.plan.packing import Room

PROBE_TIMEOUT_S = 5
DIVIDE_TRIES = 5
SCOPE = re.compile(r"aver-[0-9a-f]{12}\.scope")  # what `user_manager` asks for
LEAF = "coordinator"  # in which the coordinator and its witnesses are: jobs are beside it
_MANAGER = re.compile(r"user@[0-9]+\.service")


class CgroupBase(Record):
    """The folder in which a job's own memory cgroup can be made."""

    version: int  # 1 or 2
    folder: str


class Capabilities(Record):
    cpus: int
    memory_bytes: int
    gpus: tuple[int, ...]
    cgroup: CgroupBase | None
    cgroup_reason: str  # one sentence: which cgroup is used, or why none is
    has_children_files: bool  # /proc/PID/task/TID/children
    core_limit_bytes: int | None  # soft RLIMIT_CORE; None: unlimited
    core_pattern: str | None


class Machine(Record):
    """Where the kernel's files are. Tests give their own."""

    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    process: str = "self"  # whose cgroup is meant


def capabilities(machine: Machine = Machine()) -> Capabilities:
    """Find out what the machine has and enforces. Leaves nothing behind."""
    cgroup, reason = find_cgroup(machine)
    core = resource.getrlimit(resource.RLIMIT_CORE)[0]
    return Capabilities(
        cpus=len(own_cpus()),
        memory_bytes=memory_bytes(machine),
        gpus=gpus(machine),
        cgroup=cgroup,
        cgroup_reason=reason,
        has_children_files=(machine.proc / "self" / "task" / str(os.getpid()) / "children").exists(),
        core_limit_bytes=None if core == resource.RLIM_INFINITY else core,
        core_pattern=(_read(machine.proc / "sys" / "kernel" / "core_pattern") or "").strip() or None,
    )


def room_here(config: Config) -> Room:
    """What jobs can have of this machine: as the settings say, or else all of it. Only reads, and starts nothing."""
    return Room.of(
        config.cpus or len(own_cpus()),
        len(gpus()) if config.gpus is None else config.gpus,
        config.mem_bytes or memory_bytes(),
    )


def gpus(machine: Machine = Machine()) -> tuple[int, ...]:
    """The numbers of the NVIDIA devices, in order."""
    try:
        names = os.listdir(machine.dev)
    except OSError:
        return ()
    return tuple(sorted(int(match[1]) for name in names if (match := re.fullmatch(r"nvidia(\d+)", name))))


def memory_bytes(machine: Machine = Machine()) -> int:
    """The machine's memory, or the limit of the cgroup that we live in where that is less."""
    meminfo = _read(machine.proc / "meminfo") or ""
    found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    total = int(found[1]) * 1024 if found else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [limit for limit in _cgroup_limits(machine) if limit > 0]
    return min([total, *limits])


def find_cgroup(machine: Machine = Machine()) -> tuple[CgroupBase | None, str]:
    """Return the base for the jobs' memory cgroups, or None; and one sentence that says why."""
    own = _own_cgroup(machine, 1)
    if own is not None:
        failure = _probe(own.folder, "memory.limit_in_bytes")
        if failure is None:
            return CgroupBase(1, str(own.folder)), f"cgroup v1 memory controller, writable at {own.folder}"
        return None, f"cgroup v1: {failure}"
    own = _own_cgroup(machine, 2)
    if own is None:
        return None, "no cgroup file system with a memory controller is mounted"
    delegated = delegated_cgroup(machine)
    if delegated is not None:
        return delegated, f"cgroup v2, delegated at {delegated.folder}"
    failures = []
    for folder in _upwards(own):
        failure = _enable_memory(folder) or _probe(folder, "memory.max")
        if failure is None:
            return CgroupBase(2, str(folder)), f"cgroup v2, writable at {folder}"
        failures.append(failure)
    return None, f"cgroup v2: {failures[0]}"


def delegated_cgroup(machine: Machine = Machine()) -> CgroupBase | None:
    """The v2 cgroup, ours or above it, that was delegated to this process; None where there is none.

    Below a service manager of systemd it is our own scope, or none: units of others are not ours to divide. Elsewhere
    an ordinary user can write only what was delegated; root can write everything, which says nothing.
    """
    scope = own_scope(machine)
    own = _own_cgroup(machine, 2)
    if own is None or (scope is None and (os.geteuid() == 0 or is_below_manager(machine))):
        return None
    for folder in [scope] if scope is not None else _upwards(own):
        if (_enable_memory(folder) or _probe(folder, "memory.max")) is None:
            return CgroupBase(2, str(folder))
    return None


def own_scope(machine: Machine = Machine()) -> Path | None:
    """The scope below the user's manager that the process is in, if it is one of Aver's."""
    own = _own_cgroup(machine, 2)
    if own is None or not is_below_manager(machine):
        return None
    return next((folder for folder in _upwards(own) if SCOPE.fullmatch(folder.name)), None)


def is_below_manager(machine: Machine = Machine()) -> bool:
    """Whether the process is in a unit of a user's service manager, which ends with that user's last session."""
    own = _own_cgroup(machine, 2)
    return own is not None and any(_MANAGER.fullmatch(folder.name) for folder in _upwards(own))


def unified_cgroup(machine: Machine = Machine()) -> Path | None:
    """Where the v2 hierarchy is mounted that has all controllers; None where v1 has the memory controller."""
    own = _own_cgroup(machine, 2)
    return None if own is None or _own_cgroup(machine, 1) is not None else own.top


def has_read_only_cgroups(machine: Machine = Machine()) -> bool:
    """Whether the file system of cgroups that has the memory controller is mounted read-only, as in a container."""
    own = _own_cgroup(machine, 1) or _own_cgroup(machine, 2)
    try:
        return own is not None and bool(os.statvfs(own.folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def memory_failure(machine: Machine = Machine()) -> str | None:
    """Why no job can have a cgroup with a memory limit in the scope that the process is in; None: it can."""
    scope = own_scope(machine)
    if scope is None:
        return "the process is in no scope of Aver"
    return _enable_memory(scope) or _probe(scope, "memory.max", machine)


def make_leaf(scope: Path, machine: Machine = Machine()) -> str | None:
    """Put the process into the scope's leaf: a v2 cgroup has processes or controlled children, not both."""
    pid = str(os.getpid()) if machine.process == "self" else machine.process
    leaf = scope / LEAF
    try:
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text(pid)
    except OSError as error:
        return f"no process can be moved into {leaf} ({error.strerror})"
    return None


def container_cgroup(machine: Machine = Machine()) -> Path | None:
    """The v2 cgroup of a whole container that this process is in directly, and can divide; None elsewhere.

    All that runs in the container is in it, and must go into a leaf before it can have controlled children.
    """
    own = _own_cgroup(machine, 2)
    if own is None or own.folder != own.top or unified_cgroup(machine) is None:
        return None
    is_top_of_all = not (own.top / "cgroup.type").exists()  # the kernel's own root, which holds processes as well
    if is_top_of_all or "memory" not in (_read(own.top / "cgroup.controllers") or "").split():
        return None
    return own.top if _probe(own.top, "cgroup.procs", machine) is None else None


def divide_container(machine: Machine = Machine()) -> None:
    """Put all that runs in this container into a leaf of its cgroup, so that jobs can have theirs beside it."""
    top = container_cgroup(machine)
    if top is None or _enable_memory(top) is None:
        return
    leaf = top / LEAF
    with contextlib.suppress(OSError):
        leaf.mkdir(exist_ok=True)
    for _ in range(DIVIDE_TRIES):  # a process that is moved may have forked meanwhile
        pids = [pid for pid in (_read(top / "cgroup.procs") or "").split() if pid != "0"]  # 0: not of this container
        for pid in pids:
            with contextlib.suppress(OSError):
                (leaf / "cgroup.procs").write_text(pid)
        if _enable_memory(top) is None:
            return


def leave_job_cgroup(machine: Machine = Machine()) -> None:
    """Started inside a job, go where the job's own cgroup was made: its limit is not ours, nor its end."""
    for version in (1, 2):
        own = _own_cgroup(machine, version)
        top = None if own is None else top_of(os.fspath(own.folder))
        if top is None:
            continue
        base = Path(top).parent
        if version == 2 and (SCOPE.fullmatch(base.name) or not _join(base)):
            make_leaf(base, machine)
        elif version == 1:
            _join(base)


def _join(folder: Path) -> bool:
    try:
        (folder / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return False
    return True


class _Own(Record):
    """The cgroup that this process is in, and the mount point above which nothing can be seen."""

    folder: Path
    top: Path


def _own_cgroup(machine: Machine, version: int) -> _Own | None:
    path = None
    for line in (_read(machine.proc / machine.process / "cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if (version == 2 and number == "0" and not controllers) or (
            version == 1 and "memory" in controllers.split(",")
        ):
            path = name
    if path is None:
        return None
    for root, top in _mounts(machine, version):
        inside = os.path.relpath(path, root)
        if inside == ".." or inside.startswith("../"):
            inside = "."
        folder = Path(os.path.normpath(top / inside))
        if folder.is_dir():
            return _Own(folder, top)
    return None


def _mounts(machine: Machine, version: int) -> Iterator[tuple[str, Path]]:
    """Give (root, mount point) of each cgroup mount that has the memory controller."""
    for line in (_read(machine.proc / "self" / "mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        root, top = _unescape(fields[3]), Path(_unescape(fields[4]))
        if (version == 2 and kind[0] == "cgroup2") or (
            version == 1 and kind[0] == "cgroup" and "memory" in kind[2].split(",")
        ):
            yield root, top


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _upwards(own: _Own) -> Iterator[Path]:
    folder = own.folder
    while True:
        yield folder
        if folder == own.top or folder == folder.parent:
            return
        folder = folder.parent


def _enable_memory(folder: Path) -> str | None:
    """See to it that children of this v2 folder have the memory controller; return why it can't be."""
    control = folder / "cgroup.subtree_control"
    given = (_read(control) or "").split()
    available = (_read(folder / "cgroup.controllers") or "").split()
    if "memory" not in given:
        if "memory" not in available:
            return f"the memory controller is not available in {folder}"
        try:
            control.write_text("+memory")
        except OSError as error:
            # EBUSY is the kernel's rule that a cgroup has processes or controlled children, not both.
            return f"the memory controller can't be enabled in {folder} ({error.strerror})"
    if "pids" in available and "pids" not in given:  # after memory: pids alone makes a cgroup with processes threaded
        with contextlib.suppress(OSError):  # for `max_processes`: without it there is no such limit
            control.write_text("+pids")
    return None


def _probe(folder: Path, limit_file: str, machine: Machine = Machine()) -> str | None:
    """Make a child, open its limit, move a process in, remove it; return what could not be done."""
    child = folder / f"aver-probe-{os.getpid()}"
    try:
        child.mkdir()
    except OSError as error:
        return f"no cgroup can be made in {folder} ({error.strerror})"
    try:
        with open(child / limit_file, "r+b"):
            pass
        if not _can_move(child / "cgroup.procs", machine):
            return f"no process can be moved into a cgroup made in {folder}"
    except OSError as error:
        return f"{limit_file} can't be written in a cgroup made in {folder} ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"moving a process into a cgroup made in {folder} hangs"
    finally:
        with contextlib.suppress(OSError):
            child.rmdir()
    return None


def _can_move(procs: Path, machine: Machine) -> bool:
    """Move a process in: a child of ours, or the one that is meant, which goes back to its leaf."""
    if machine.process != "self":
        procs.write_text(machine.process)
        return make_leaf(procs.parent.parent, machine) is None
    moved = subprocess.run(
        ["/bin/sh", "-c", 'echo 0 > "$1"', "sh", str(procs)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PROBE_TIMEOUT_S,
        check=False,
    )
    return moved.returncode == 0


def _cgroup_limits(machine: Machine) -> Iterator[int]:
    first = _own_cgroup(machine, 1)
    if first is not None:
        stat = _read(first.folder / "memory.stat") or ""
        found = re.search(r"^hierarchical_memory_limit (\d+)", stat, re.MULTILINE)
        if found:
            yield int(found[1])
    second = _own_cgroup(machine, 2)
    if second is not None:
        for folder in _upwards(second):
            text = (_read(folder / "memory.max") or "").strip()
            if text.isdigit():
                yield int(text)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
