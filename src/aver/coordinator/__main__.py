"""`python -m aver.coordinator HOME READY_FD`: become the coordinator of a home, or say why not.

Started by the client. It leaves the caller's session, folder and descriptors, and answers on
READY_FD with one line: `ready`, `busy` (another one is there) or `error STATUS SENTENCE`.
With `--service` in place of READY_FD it is started by systemd or cron: it waits until no other one is there, and does
not leave when it is idle.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

from aver.client.service import SERVICE_WORD
from aver.client.slurm_bin import install
from aver.config import load_config
from aver.coordinator.commit_thread import Committer
from aver.coordinator.engine_set import Engines
from aver.coordinator.guard import Guard
from aver.coordinator.loop import Loop
from aver.coordinator.server import Server
from aver.coordinator.state.live import Identity
from aver.coordinator.state.machine import Machine
from aver.engines.api import Site, Totals
from aver.engines.local.capabilities import divide_container, gpus, leave_job_cgroup, memory_bytes
from aver.engines.local.cpu_sets import leave_job_cpus
from aver.engines.local.mark import mark_self
from aver.engines.local.user_manager import enter_scope
from aver.engines.registry import all_engines, capabilities_of, find_engine
from aver.errors import AverError, UnreachableError
from aver.home import Home, read_boot_id
from aver.launch import coordinator_command
from aver.log import log
from aver.model.evidence import Rules
from aver.plan.packing import Room
from aver.protocol.lock import Lock, LockBusy
from aver.store.write.writer import Writer

LARGEST_LOG_BYTES = 4 << 20
LOCK_PAUSE_S = 1.0
SWITCH_S = 0.0002  # the committer must not keep the loop from a slot that is free: its turn is short


def main() -> None:
    """`python -m aver.coordinator HOME READY_FD`, as clients start it; without READY_FD in the foreground, to debug."""
    home = Home(Path(sys.argv[1]))
    in_foreground = len(sys.argv) == 2
    is_service = sys.argv[2:] == [SERVICE_WORD]
    ready_fd = 1 if in_foreground or is_service else int(sys.argv[2])
    if not in_foreground and not is_service and os.fork():
        os._exit(0)  # the client waits for this one; the coordinator is nobody's child
    _leave_the_caller(ready_fd)
    if not in_foreground:
        _leave_the_terminal(home)
    try:
        home.prepare()
        lock = _wait_for_lock(home) if is_service else Lock.acquire(home)
    except LockBusy:
        _answer(ready_fd, "busy")
        return
    except AverError as error:
        _answer(ready_fd, f"error {error.exit_status} {error}")
        return
    try:
        install(home)
    except AverError as error:
        log(str(error))  # jobs run all the same, without Slurm's commands
    divide_container()
    obstacle = enter_scope(home.path)
    if obstacle is not None:
        log(f"no cgroup from the user's service manager: {obstacle.what}; {obstacle.remedy}")
    try:
        loop = _build(home, lock, is_service)
        loop.recover()
    except (AverError, OSError) as error:
        log(f"could not start: {error}")
        status = error.exit_status if isinstance(error, AverError) else UnreachableError.exit_status
        _answer(ready_fd, f"error {status} {error if isinstance(error, AverError) else f'it could not start: {error}'}")
        lock.release()
        return
    log(f"ready, pid {os.getpid()}")
    _answer(ready_fd, "ready")
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    sys.setswitchinterval(SWITCH_S)
    loop.run()
    lock.release()
    if loop.starts_over:
        log("starting over")
        command = coordinator_command(os.fspath(home.path))
        os.execv(command[0], [*command, SERVICE_WORD] if is_service else command)


def _wait_for_lock(home: Home) -> Lock:
    """The lock, when the coordinator that a command started has left."""
    while True:
        with contextlib.suppress(LockBusy):
            return Lock.acquire(home)
        time.sleep(LOCK_PAUSE_S)


def _build(home: Home, lock: Lock, is_service: bool) -> Loop:
    config = load_config()
    totals = Totals(
        cpus=config.cpus or len(os.sched_getaffinity(0)),
        gpus=len(gpus()) if config.gpus is None else config.gpus,
        mem_bytes=config.mem_bytes or memory_bytes(),
    )
    writer = Writer.open(home.database)
    host = socket.gethostname().split(".")[0]
    identity = Identity(writer.home_id, read_boot_id(), host, os.urandom(4).hex())
    machine = Machine(
        identity, Room.of(totals.cpus, totals.gpus, totals.mem_bytes), writer.next_id(), capabilities_of,
        config.max_running, config.slurm.max_submitted,
        Rules(fallback_completes=config.slurm.fallback == "completed", overrun_fails=config.memory_overrun == "fail"),
        config.requeue, dict(config.pools),
    )  # fmt: skip
    machine.live.on_illegal_move = lambda text: log(f"a bug in Aver: {text}, a move that docs/design/states.md lacks")
    poller = select.epoll()
    server = Server(home.path, poller)
    engines = Engines(Site(home, identity.home, config, totals), all_engines(), find_engine, poller)
    committer = Committer(writer)
    guard = Guard(home, lock, server, committer)
    idle_exit_s = math.inf if is_service else config.idle_exit_s
    return Loop(home, guard, server, poller, committer, engines, machine, config.kill_wait_s, idle_exit_s)


def _leave_the_caller(ready_fd: int) -> None:
    os.chdir("/")
    os.umask(0o077)
    leave_job_cgroup()
    leave_job_cpus()
    mark_self()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(ready_fd, 3, inheritable=False)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    ctypes.CDLL(None).prctl(15, b"aver-coord", 0, 0, 0)  # PR_SET_NAME


def _leave_the_terminal(home: Home) -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(_open_log(home, null), 2)


def _open_log(home: Home, null: int) -> int:
    try:
        if home.log.exists() and home.log.stat().st_size > LARGEST_LOG_BYTES:
            home.log.replace(home.log.with_suffix(".log.old"))
        return os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return null


def _answer(_: int, line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(3, line.replace("\n", " ").encode() + b"\n")
    os.close(3)


if __name__ == "__main__":
    try:
        main()
    except SystemExit:
        raise
    except BaseException:
        log(f"a bug in Aver: {traceback.format_exc()}")
        os._exit(70)
