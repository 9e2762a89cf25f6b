"""A mark that every process of an attempt carries, whatever it does to its session and its environment.

It is the soft limit of RLIMIT_LOCKS, which Linux has not looked at since 2.4: no process notices it, all inherit it
through fork and exec, and /proc shows it. A process that sets this limit itself gets away; none is known to.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
from functools import cache

RLIMIT_LOCKS = 10  # Python's module has no name for it
_LEAST = 1 << 52  # no limit that anybody sets by hand


def mark_of(key: str) -> int:
    """A number that is the attempt's own, as far as 48 bits can tell."""
    return _LEAST | int.from_bytes(hashlib.blake2b(key.encode(), digest_size=6).digest(), "big")


@cache
def can_mark() -> bool:
    """Whether jobs can be given any such limit: not if somebody has set a hard one for us."""
    try:
        return resource.getrlimit(RLIMIT_LOCKS)[1] == resource.RLIM_INFINITY
    except (ValueError, OSError):
        return False


def carries(pid: int, mark: int) -> bool:
    """Whether the process has this mark; False also if it can't be told."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            text = file.read()
    except OSError:
        return False
    line = next((line for line in text.splitlines() if line.startswith(b"Max file locks")), b"")
    return line.split()[3:4] == [b"%d" % mark]


def mark_self() -> None:
    """Take a mark of our own: we are none of the processes of the job that we were started in, and what we start is not
    either, nor is it an orphan of a job that came to us."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(RLIMIT_LOCKS)
        own = mark_of(f"coordinator {os.getpid()}") if can_mark() else hard
        resource.setrlimit(RLIMIT_LOCKS, (own, hard))


def own_mark() -> int | None:
    """The mark that this process and its own children carry; None if it has none."""
    with contextlib.suppress(ValueError, OSError):
        soft, _ = resource.getrlimit(RLIMIT_LOCKS)
        return soft if _LEAST <= soft < 2 * _LEAST else None
    return None
