"""A second user of the machine, as root plays it: a child that has dropped to another uid."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import pytest

OTHER = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can act as a second user")


def as_other(act: Callable[[], object]) -> int:
    """Run `act` in a child with the second user's uid; its pid."""
    pid = os.fork()
    if pid:
        return pid
    with contextlib.suppress(BaseException):
        os.setgroups([])
        os.setresgid(OTHER, OTHER, OTHER)
        os.setresuid(OTHER, OTHER, OTHER)
        act()
        os._exit(0)
    os._exit(1)


def other_does(act: Callable[[], object]) -> None:
    """The same, and wait for it."""
    assert os.waitpid(as_other(act), 0)[1] == 0
