"""A coordinator that may open few files: doctor says so, and jobs run or get a sentence."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from live_home import LiveHome

Typed = Callable[..., subprocess.CompletedProcess[bytes]]


def limited(count: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


@pytest.mark.usefixtures("live")
def test_doctor_says_so(typed: Typed) -> None:
    """Status 1 and the number."""
    said = typed("doctor", preexec_fn=limited(64))
    assert said.returncode == 1
    assert b"64" in next(line for line in said.stdout.splitlines() if b"open files" in line)
    assert b"open files" in typed("doctor").stdout


def test_a_job_runs_with_64(live: LiveHome, typed: Typed) -> None:
    """There is room for one."""
    done = typed("run", "--", "true", preexec_fn=limited(64))
    assert done.returncode == 0, done.stderr


def test_more_jobs_than_descriptors(live: LiveHome, typed: Typed) -> None:
    """What can't be started says which limit is too low; nothing hangs and nothing is a traceback."""
    flow = live.folder / "flow.yaml"
    flow.write_text("jobs:\n  - {name: a, run: 'sleep 1.{n}', matrix: {n: [1, 2, 3, 4]}, cpus: 1}\n")
    done = typed("run", str(flow), preexec_fn=limited(28))
    assert b"Traceback" not in done.stderr + live.home.log.read_bytes()
    words = [typed("why", str(job)).stdout for job in range(2, 6)]
    assert done.returncode == 1, "28 is no longer too few for this test"
    assert all(b"Completed" in text or b"ulimit -n" in text for text in words), words


def test_not_even_a_coordinator(live: LiveHome, typed: Typed) -> None:
    """One line that names the limit."""
    done = typed("run", "--", "true", preexec_fn=limited(16))
    assert done.returncode != 0
    assert done.stderr.count(b"\n") == 1
    assert b"Too many open files" in done.stderr


def test_limits_of_whoever_started_the_coordinator(live: LiveHome, typed: Typed) -> None:
    """A job that can't be given its submitter's hard limits says so, and gets them after `aver stop`."""
    words = ("submit", "--", "sh", "-c", "ulimit -Hn > limit; sleep 300")
    assert typed(*words, preexec_fn=limited(512)).stderr == b""
    said = typed("submit", "--", "true")
    assert b"open files 512" in said.stderr
    assert typed("stop").returncode == 0
    live.wait_until_gone()
    again = typed("submit", "-o", "own", "--", "sh", "-c", "ulimit -Hn")
    assert again.stderr == b""
    live.settle([int(again.stdout)])
    assert (live.folder / "own").read_text() == f"{resource.getrlimit(resource.RLIMIT_NOFILE)[1]}\n"


def test_limits_are_said_by_slurms_commands_and_python(live: LiveHome, typed: Typed) -> None:
    """Each job gets its submitter's limits, or a sentence; -Q wants none."""
    assert typed("submit", "--", "sleep", "300", preexec_fn=limited(512)).stderr == b""
    python = "import aver; flow = aver.Flow('f'); flow.job('a', ['true']); flow.submit()"

    def said(*words: str) -> bytes:
        done = subprocess.run(words, cwd=live.folder, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert b"sbatch: warning: jobs get lower limits" in said(f"{live.home.bin}/sbatch", "--wrap", "true")
    assert said(f"{live.home.bin}/sbatch", "-Q", "--wrap", "true") == b""
    assert b"srun: warning: jobs get lower limits" in said(f"{live.home.bin}/srun", "true")
    assert b"UserWarning: jobs get lower limits" in said(sys.executable, "-c", python)
    assert typed("cancel", "1").returncode == 0
