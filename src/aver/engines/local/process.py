"""Processes that may end while they are looked at: a number is of one process only together with its start.

A signal goes through a pidfd: that is opened first, then it is seen whether the number is still the process that was
meant. So whoever gets the number afterwards is not hit.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import signal
from collections.abc import Callable

from aver.engines.local.mark import is_coordinators, mark_on

PR_SET_CHILD_SUBREAPER = 36


def start_of(pid: int) -> int | None:
    """When the process started, in ticks since boot; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def send_signal(pid: int, number: int, is_meant: Callable[[], bool]) -> bool:
    """Send it if `is_meant` says, once it can't become another process, that this is the right one.

    Return whether it was sent; PermissionError if it may not be.
    """
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError:  # a kernel without pidfds, or no descriptor is left
        if is_meant():
            os.kill(pid, number)
            return True
        return False
    try:
        if not is_meant():
            return False
        signal.pidfd_send_signal(process, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(process)


def take_orphans(on: int) -> None:
    """Orphans of a killed witness come to us, where they are found and ended; no longer with 0."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)


def reap(dead: set[int]) -> None:
    """Wait for those of the witnesses that have ended, and for a process that was left to us."""
    for pid in list(dead):
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        except ChildProcessError:
            pass
        dead.discard(pid)
    reap_stranger()


def reap_stranger() -> None:
    """A coordinator that one of our jobs started for another home, and its witnesses, come to us when the witness of
    that job leaves. Our own children are left to who waits for them."""
    with contextlib.suppress(ChildProcessError):
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        mark = None if ended is None else mark_on(ended.si_pid)
        if ended is not None and is_coordinators(mark) and mark != mark_on(os.getpid()):
            os.waitpid(ended.si_pid, os.WNOHANG)


def advice_on(error: OSError) -> str:
    """What to do about a limit of ours that is too low."""
    if error.errno != errno.EMFILE:
        return ""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"; the coordinator may open {most}: raise `ulimit -n`, then `aver stop`, and submit again"
