"""The mark of an attempt: inherited by all its processes, and by nobody else."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from aver.engines.local.mark import RLIMIT_LOCKS, can_mark, is_coordinators, mark_of, mark_on

pytestmark = pytest.mark.skipif(not can_mark(), reason="somebody has set a hard RLIMIT_LOCKS")
KEY = "0123abcd.7.1.bbbbbbbb"


def marked(*command: str) -> subprocess.Popen[bytes]:
    """Start a program as a witness does, with the mark of KEY; it ends with its stdin."""

    def mark() -> None:
        resource.setrlimit(RLIMIT_LOCKS, (mark_of(KEY), resource.RLIM_INFINITY))

    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=mark)


def test_it_survives_a_session_and_an_empty_environment() -> None:
    """What `setsid env -i` starts carries it."""
    process = marked("setsid", "-w", "env", "-i", "/bin/sh", "-c", "echo $$; read line")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert mark_on(pid) == mark_of(KEY)
    assert mark_on(pid) != mark_of(KEY + ".s0.t0")
    assert not is_coordinators(mark_on(pid))
    process.communicate(b"\n", timeout=30)
    assert mark_on(pid) is None


def test_a_coordinator_that_is_started_in_a_job_has_its_own() -> None:
    """It is none of the job's processes, and what it starts is not either."""
    code = "from aver.engines.local.mark import mark_self; mark_self(); print(1, flush=True); input()"
    process = marked(sys.executable, "-c", code)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    assert is_coordinators(mark_on(process.pid))
    process.communicate(b"\n", timeout=30)


def test_marks_differ_and_are_no_limit_that_anybody_sets() -> None:
    """Each attempt and each task has its own."""
    marks = {mark_of(f"{KEY}.s{step}.t{task}") for step in range(50) for task in range(50)}
    assert len(marks) == 2500
    assert all(1 << 52 <= mark < 1 << 53 for mark in marks)
