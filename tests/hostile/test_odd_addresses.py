"""Addresses of jobs that are not UTF-8: a sentence where there is no such job, and the job where there is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from live_home import LiveHome, shell_job

Typed = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.mark.parametrize("command", ["show", "why", "log", "cancel", "jobs", "watch", "retry", "results"])
def test_no_such_job(live: LiveHome, typed: Typed, command: str) -> None:
    """Status 2 and one line."""
    live.settle([live.run_text("true")])
    for address in (b"1/a\xff*", b"1/\xff", b"\xff"):
        done = typed(command, address)
        assert done.returncode == 2, done
        assert done.stderr.count(b"\n") == 1


def test_job_of_that_name(live: LiveHome, typed: Typed) -> None:
    """A name with such a byte is found by it."""
    run = live.submit(shell_job("a\udcff", "true"), shell_job("b", "true"))
    live.settle([run])
    done = typed("show", b"%d/a\xff" % run)
    assert done.returncode == 0, done.stderr
