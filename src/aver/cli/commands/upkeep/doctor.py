"""`aver doctor`: what this machine can enforce, and what it can't and why."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import click

from aver.cli.commands.look.status import to_do
from aver.cli.options import EngineChoice, json_option
from aver.cli.output.documents import Check, Diagnosis
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.client.delivery import read_told
from aver.client.unknown_attempts import running_words
from aver.config import SHIPPED_ENGINES, Config, load_config
from aver.engines.local.capabilities import (
    Capabilities,
    capabilities,
    container_cgroup,
    delegated_cgroup,
    has_read_only_cgroups,
    unified_cgroup,
)
from aver.engines.local.cpu_sets import numa_nodes, own_cpus
from aver.engines.local.login import ends_at_logout
from aver.engines.local.tools import container_problem, has_conda, has_container_engine, has_modules
from aver.engines.local.user_manager import SLICE, probe_manager
from aver.engines.registry import capabilities_of
from aver.errors import AverError, UsageError
from aver.protocol.client import Client
from aver.protocol.messages import Ping, Pong
from aver.render import verdict
from aver.spec.container_command import ENGINES
from aver.store.losses import LOSSES, read_losses
from aver.store.open import is_on_network, sqlite_version
from aver.version import __version__
from aver.witness import binary as find_witness

OK, LIMITED, MISSING = "ok", "limited", "missing"
VERSION_TIMEOUT_S = 5
FEW_FILES = 1024  # four or so for each job that runs, and for each client
TOO_FEW_FILES = 128
WRITABLE = {  # by the version of cgroups: the option of podman or docker
    1: "start the container with `-v /sys/fs/cgroup:/sys/fs/cgroup:rw`",
    2: "start the container with `--security-opt unmask=/sys/fs/cgroup` (docker: `writable-cgroups=true`)",
}


@click.command("doctor")
@click.option("--engine", type=EngineChoice(), default=SHIPPED_ENGINES[0], help="Engine to check (default: local).")
@click.option("--host", metavar="HOST", help="With --engine slurm: host to check over ssh, such as me@login.")
@json_option
def command(engine: str, host: str | None, as_json: bool) -> int:
    """Show what this machine can and can't enforce, and why.

    With --engine slurm: what the cluster has (version, accounting, limits, shared folder). Exits 1 if
    something without which no job can run is missing.

    \b
    Examples:
      aver doctor
      aver doctor --engine slurm
      aver doctor --engine slurm --host me@login.example.org
      aver doctor --json
    """
    session = Session()
    if capabilities_of(engine).takes_sbatch_options:
        from aver.cli.cluster_checks import cluster_checks  # most never need it

        site = (*cluster_checks(session.home, load_config(), host), _witness(), _coordinator(session), _settings())
        answer(session.output, Diagnosis(__version__, str(session.home.path), site), as_json)
        return 1 if any(check.status == MISSING for check in site) else 0
    found = capabilities()
    checks = (
        *_resources(found),
        *_limits(found),
        _processes(found),
        _core_dumps(found),
        _open_files(),
        _tools(),
        _containers(),
        _witness(),
        *_home(session),
        _coordinator(session),
        _logout(session),
        _store(session),
        _settings(),
        _notifications(session),
    )
    answer(session.output, Diagnosis(__version__, str(session.home.path), checks), as_json)
    return 1 if any(check.status == MISSING for check in checks) else 0


def _resources(found: Capabilities) -> Iterator[Check]:
    yield _cpus(found)
    yield Check(
        "memory", OK, f"{verdict.bytes_words(found.memory_bytes)} (the cgroup's limit where that is less)", None
    )
    gpus = f"{len(found.gpus)}: {', '.join(f'nvidia{number}' for number in found.gpus)}" if found.gpus else "none"
    hidden = "; hidden from jobs that ask for none" if found.gpus and _config().hide_gpus else ""
    yield Check("gpus", OK, f"{gpus}{hidden}", None)


def _cpus(found: Capabilities) -> Check:
    total = _config().cpus or found.cpus
    if total <= found.cpus:
        nodes = len(numa_nodes(own_cpus()))
        near = f", from one of {nodes} NUMA nodes where it has enough" if nodes > 1 else ""
        return Check("cpus", OK, f"{total}; a job with whole CPUs runs on its own (affinity){near}", None)
    return Check(
        "cpus",
        LIMITED,
        f"{total} by the settings, and this process may use {found.cpus}: jobs share them, none has its own",
        None,
    )


def _config() -> Config:
    """The settings; those with a mistake, which has a check of its own, are the defaults."""
    try:
        return load_config()
    except AverError:
        return Config()


def _limits(found: Capabilities) -> Iterator[Check]:
    yield _memory_limit(found)
    most = _config().max_processes
    if most is not None and unified_cgroup() is None:
        yield Check("process limit", LIMITED, f"max_processes = {most} of the settings needs cgroup v2", None)


def _memory_limit(found: Capabilities) -> Check:
    if delegated_cgroup() is not None or unified_cgroup() is None:
        obstacle = None
    else:
        obstacle = probe_manager()
        if obstacle is None:
            where = f"cgroup v2, a scope in {SLICE} of your service manager"
            return Check("memory limit", OK, f"by the kernel: {where}", None)
    if found.cgroup is not None:
        return Check("memory limit", OK, f"by the kernel: {found.cgroup_reason}", None)
    container = container_cgroup()
    if container is not None:
        return Check("memory limit", OK, f"by the kernel: cgroup v2, that of the container at {container}", None)
    what, remedy = (found.cgroup_reason, None) if obstacle is None else (obstacle.what, obstacle.remedy)
    if has_read_only_cgroups():
        what, remedy = found.cgroup_reason, WRITABLE[1 if unified_cgroup() is None else 2]
    number = _config().memory_rlimit
    also = "" if number == "none" else f", and by RLIMIT_{number.upper()} for each process"
    return Check(
        "memory limit",
        LIMITED,
        f"by sampling, which a job that grows fast may outrun{also}: {what}",
        remedy,
    )


def _processes(found: Capabilities) -> Check:
    if found.has_children_files:
        return Check(
            "clean-up", OK, "the kernel lists the children of a process; nothing of a job is left behind", None
        )
    return Check(
        "clean-up",
        LIMITED,
        "the kernel has no /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN)",
        "left-over processes are found through the cgroup and by the job's key only",
    )


def _open_files() -> Check:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = "no limit" if most == resource.RLIM_INFINITY else f"{most} (the hard limit of this shell)"
    if most == resource.RLIM_INFINITY or most >= FEW_FILES:
        return Check("open files", OK, text, None)
    status = MISSING if most < TOO_FEW_FILES else LIMITED
    return Check(
        "open files", status, text, f"a coordinator that is started here needs {FEW_FILES}: raise `ulimit -Hn` first"
    )


def _tools() -> Check:
    found = {"module": has_modules(), "conda": has_conda()}
    there = ["venv", *(name for name, is_there in found.items() if is_there)]
    lacking = [name for name, is_there in found.items() if not is_there]
    more = f"; not here: {', '.join(lacking)}" if lacking else ""
    return Check("environments", OK, f"jobs may have {', '.join(there)}{more}", None)


def _containers() -> Check:
    found = {name: container_problem(name) for name in ENGINES if has_container_engine(name)}
    if not found:
        return Check("containers", OK, f"none: neither {', '.join(ENGINES[:-1])} nor {ENGINES[-1]} is on PATH", None)
    good = [name for name, problem in found.items() if not problem]
    wrong = "; ".join(f"{name}: {problem}" for name, problem in found.items() if problem)
    if good:
        return Check("containers", OK, f"jobs may have {', '.join(good)}" + (f"; not {wrong}" if wrong else ""), None)
    return Check("containers", OK, f"none: {wrong}", None)


def _core_dumps(found: Capabilities) -> Check:
    where = (
        f"kernel.core_pattern is {found.core_pattern}" if found.core_pattern else "kernel.core_pattern can't be read"
    )
    if found.core_limit_bytes == 0:
        return Check(
            "core dumps", OK, f"off (limit 0); {where}", "`ulimit -c unlimited` before `aver run` turns them on"
        )
    size = "no limit" if found.core_limit_bytes is None else f"limit {verdict.bytes_words(found.core_limit_bytes)}"
    return Check("core dumps", OK, f"on ({size}); {where}", None)


def _witness() -> Check:
    try:
        path = find_witness()
        done = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (AverError, OSError, subprocess.TimeoutExpired) as error:
        return Check(
            "witness", MISSING, f"can't be run: {error}", "install Aver again where a C compiler is (gcc or clang)"
        )
    if done.returncode != 0:
        return Check("witness", MISSING, f"{path} --version exits {done.returncode}", "install Aver again")
    return Check("witness", OK, f"{done.stdout.strip()}, {path}", None)


def _home(session: Session) -> Iterator[Check]:
    path = session.home.path
    existing = _existing(path)
    try:
        session.home.check()
    except AverError as error:
        yield Check("home", MISSING, str(error), None)
        return
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Check("home", MISSING, f"{path} can't be written", "set AVER_HOME to a folder that you can write")
        return
    yield Check("home", OK, str(path) if existing == path else f"{path} (made when it is first needed)", None)
    if is_on_network(existing):
        yield Check(
            "file system",
            LIMITED,
            "a network file system, or possibly one: a rollback journal is used instead of WAL",
            "readers may wait for the writer; AVER_HOME on a local disk is faster",
        )
    else:
        yield Check("file system", OK, "local: WAL is used, readers never wait", None)
    space = os.statvfs(existing)
    free = space.f_bavail * space.f_frsize
    status = OK if free > 100 * 1024 * 1024 else LIMITED
    yield Check("free space", status, verdict.bytes_words(free), None if status == OK else "free some space soon")


def _store(session: Session) -> Check:
    """Whether the store can be read as far as a reader of all runs goes."""
    try:
        runs = 0 if session.reader is None else len(session.reader.runs())
        running = running_words(session.home, session.reader)
    except AverError as error:
        return Check("store", MISSING, str(error), None)
    if lost := [*read_losses(os.fspath(session.home.path))[-1:], *running]:
        advice = (
            f"rm {session.home.path / LOSSES} when you have read it"
            if read_losses(os.fspath(session.home.path))
            else None
        )
        return Check("store", LIMITED, "; ".join(lost), advice)
    return Check("store", OK, f"{runs} run{'s' if runs != 1 else ''}, SQLite {sqlite_version()}", None)


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _coordinator(session: Session) -> Check:
    try:
        client = Client.connect(session.home, start=False)
        reply = client.ask(Ping(), Pong)
        client.close()
    except UsageError:
        return Check("coordinator", MISSING, "not asked: it, or the home, may be another user's", None)
    except AverError:
        holder = session.home.holder().get("host")
        if holder is not None and holder != os.uname().nodename:
            return Check("coordinator", LIMITED, f"on host {holder}: from here only reading works", None)
        return Check("coordinator", OK, "none runs; the next command that needs one starts it", None)
    running, pending = to_do(session)
    text = f"process {reply.pid}, {running} running, {pending} pending"
    if reply.version != __version__:
        return Check("coordinator", LIMITED, f"{text}, version {reply.version}", "`aver stop`: the next one is new")
    return Check("coordinator", OK, text, None)


def _logout(session: Session) -> Check:
    """Of the coordinator that runs, or of one that would be started here."""
    pid = session.home.holder().get("pid") if session.home.has_coordinator() else None
    why = ends_at_logout(pid if isinstance(pid, int) else None)
    if why is None:
        return Check("logout", OK, "jobs go on after your logout", None)
    return Check("logout", LIMITED, f"jobs end when you log out: {why.what}", why.remedy)


def _notifications(session: Session) -> Check:
    told = read_told(session.home)
    if told is None or not (told.delivered or told.given_up or told.trying):
        return Check("notifications", OK, "none was due", None)
    fact = f"{told.delivered} delivered, {told.given_up} given up"
    advice = f"try the command by hand; {session.home.log} has every try"
    if told.trying:
        return Check("notifications", LIMITED, f"{fact}; tried and to be tried again: {told.trying}", advice)
    if not told.problem:
        return Check("notifications", OK, fact, None)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told.problem_at))
    return Check("notifications", LIMITED, f"{fact}; the last: {when}, {told.problem}", advice)


def _settings() -> Check:
    try:
        load_config()
    except AverError as error:
        return Check("settings", MISSING, str(error), None)
    return Check("settings", OK, "no mistakes", None)
