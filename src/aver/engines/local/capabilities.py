"""What this machine can enforce, and what it can't and why.

Facts only, found by trying: a cgroup base is reported when a child folder was really made, a
process really moved into it, and the folder removed again. Nothing here changes how jobs are run.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

from aver.engines.local.job_cgroup import top_of
from aver.model.record import Record

PROBE_TIMEOUT_S = 5


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
    core_limit_bytes: int | None  # soft RLIMIT_CORE; None is no limit
    core_pattern: str | None


class Machine(Record):
    """Where the kernel's files are. Tests give their own."""

    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


def capabilities(machine: Machine = Machine()) -> Capabilities:
    """Find out what the machine has and enforces. Leaves nothing behind."""
    cgroup, reason = find_cgroup(machine)
    core = resource.getrlimit(resource.RLIMIT_CORE)[0]
    return Capabilities(
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=memory_bytes(machine),
        gpus=gpus(machine),
        cgroup=cgroup,
        cgroup_reason=reason,
        has_children_files=(machine.proc / "self" / "task" / str(os.getpid()) / "children").exists(),
        core_limit_bytes=None if core == resource.RLIM_INFINITY else core,
        core_pattern=(_read(machine.proc / "sys" / "kernel" / "core_pattern") or "").strip() or None,
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
    failures = []
    for folder in _upwards(own):
        failure = _enable_memory(folder) or _probe(folder, "memory.max")
        if failure is None:
            return CgroupBase(2, str(folder)), f"cgroup v2, delegated at {folder}"
        failures.append(failure)
    return None, f"cgroup v2: {failures[0]}; `systemd-run --user --scope` gives a delegated one where systemd runs"


def leave_job_cgroup(machine: Machine = Machine()) -> None:
    """Started inside a job, go where the job's own cgroup was made: its limit is not ours, nor its end."""
    for version in (1, 2):
        own = _own_cgroup(machine, version)
        top = None if own is None else top_of(os.fspath(own.folder))
        if top is not None:
            with contextlib.suppress(OSError):
                (Path(top).parent / "cgroup.procs").write_text(str(os.getpid()))


class _Own(Record):
    """The cgroup that this process is in, and the mount point above which nothing can be seen."""

    folder: Path
    top: Path


def _own_cgroup(machine: Machine, version: int) -> _Own | None:
    path = None
    for line in (_read(machine.proc / "self" / "cgroup") or "").splitlines():
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
    if "memory" in (_read(control) or "").split():
        return None
    if "memory" not in (_read(folder / "cgroup.controllers") or "").split():
        return f"the memory controller is not available in {folder}"
    try:
        control.write_text("+memory")
    except OSError as error:
        # EBUSY is the kernel's rule that a cgroup has processes or controlled children, not both.
        return f"the memory controller can't be enabled in {folder} ({error.strerror})"
    return None


def _probe(folder: Path, limit_file: str) -> str | None:
    """Make a child, open its limit, move a process in, remove it; return what could not be done."""
    child = folder / f"aver-probe-{os.getpid()}"
    try:
        child.mkdir()
    except OSError as error:
        return f"no cgroup can be made in {folder} ({error.strerror})"
    try:
        with open(child / limit_file, "r+b"):
            pass
        moved = subprocess.run(
            ["/bin/sh", "-c", 'echo 0 > "$1"', "sh", str(child / "cgroup.procs")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
        if moved.returncode != 0:
            return f"no process can be moved into a cgroup made in {folder}"
    except OSError as error:
        return f"{limit_file} can't be written in a cgroup made in {folder} ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"moving a process into a cgroup made in {folder} hangs"
    finally:
        with contextlib.suppress(OSError):
            child.rmdir()
    return None


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
