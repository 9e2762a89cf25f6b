"""A mark that says whose a process is, whatever it does to its session and its environment: an attempt's or task's, or
a coordinator's.

It is the soft limit of RLIMIT_LOCKS, which Linux has not looked at since 2.4: no process notices it, all inherit it
through fork and exec, and /proc shows it. A process that sets this limit itself gets away; none is known to. A
coordinator and its witnesses carry a mark of their own kind, so that they are told from the processes of a job that
they were started in: by the witness of that job (`is_apart` in witness.c), and by a coordinator that ends what a job
left.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
from functools import cache

RLIMIT_LOCKS = 10  # Python's module has no name for it
_LEAST = 1 << 52  # no limit that anybody sets by hand
_COORDINATORS = 1 << 53  # at least; witness.c has it as MARK_BITS


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


def mark_on(pid: int) -> int | None:
    """The mark that the process carries; None if it has none, or it can't be told."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            text = file.read()
    except OSError:
        return None
    line = next((line for line in text.splitlines() if line.startswith(b"Max file locks")), b"")
    soft = b"".join(line.split()[3:4])
    return int(soft) if soft.isdigit() and int(soft) >= _LEAST else None


def is_coordinators(mark: int | None) -> bool:
    """Whether the mark is of a coordinator, its witnesses and what else it starts."""
    return mark is not None and _COORDINATORS <= mark < 2 * _COORDINATORS


def mark_self() -> None:
    """Take a coordinator's mark: we are none of the processes of the job that we were started in, and what we start is
    not either, nor is it an orphan of a job that came to us."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(RLIMIT_LOCKS)
        own = _COORDINATORS | mark_of(f"coordinator {os.getpid()}") if can_mark() else hard
        resource.setrlimit(RLIMIT_LOCKS, (own, hard))
