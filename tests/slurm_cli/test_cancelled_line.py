"""The line `*** JOB 7 ON host CANCELLED AT … ***` in the output of a batch job: where, how often, and where not."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from slurm_commands import Slurm

from aver.model.states import State

HOST = os.uname().nodename.partition(".")[0]
TRAPS = "trap 'echo trapped; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
SLEEPS = "echo ready; sleep 100"
AT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"


def line(job: int, due: str = "") -> str:
    """As a real Slurm 22.05 writes it."""
    return rf"slurmstepd: error: \*\*\* JOB {job} ON {re.escape(HOST)} CANCELLED AT {AT}{due} \*\*\*\n"


def start(slurm: Slurm, text: str, *args: str) -> int:
    """A batch job that has written `ready` to the file `out`."""
    job = slurm.submit("-o", "out", *args, "--wrap", text)
    slurm.until_file("out", "ready")
    return job


@pytest.mark.parametrize("how", [(), ("-s", "KILL")])
def test_a_cancelled_job_has_the_line_once(slurm: Slurm, how: tuple[str, ...]) -> None:
    """scancel writes it before the job is signalled, whatever else is asked for of the job then."""
    job = start(slurm, SLEEPS)
    slurm("scancel", *how, str(job))
    slurm("scancel", str(job))
    slurm.until_state(job, State.CANCELLED)
    assert re.fullmatch("ready\n" + line(job), slurm.read("out")), slurm.read("out")


def test_what_a_trap_writes_comes_after_it(slurm: Slurm) -> None:
    job = start(slurm, TRAPS)
    slurm("scancel", str(job))
    slurm.until_state(job, State.CANCELLED)
    assert re.fullmatch("ready\n" + line(job) + "(Terminated\n)?trapped\n", slurm.read("out")), slurm.read("out")


def test_a_time_limit_is_named(slurm: Slurm) -> None:
    job = start(slurm, SLEEPS, "-t", "0:02")
    slurm.until_state(job, State.TIMEOUT)
    assert re.fullmatch("ready\n" + line(job, " DUE TO TIME LIMIT"), slurm.read("out")), slurm.read("out")


def test_a_requeue_is_named(slurm: Slurm) -> None:
    """The next attempt writes to the same file, and is ended by its own cancellation."""
    job = start(slurm, f"echo $SLURM_RESTART_COUNT; {SLEEPS}", "--open-mode=append")
    assert slurm("scontrol", "requeue", str(job)).status == 0
    slurm.until_file("out", "\n1\nready\n")
    slurm("scancel", str(job))
    slurm.until_state(job, State.CANCELLED)
    wanted = "\nready\n" + line(job, " DUE TO JOB REQUEUE") + "1\nready\n" + line(job)
    assert re.fullmatch(wanted, slurm.read("out")), slurm.read("out")


def test_members_of_an_array_have_their_own_numbers(slurm: Slurm) -> None:
    run = slurm.submit("-o", "out-%a", "-a", "1-2", "--wrap", SLEEPS)
    for index in (1, 2):
        slurm.until_file(f"out-{index}", "ready")
    slurm("scancel", str(run))
    for index, job in enumerate(sorted(row.id for row in slurm.jobs(run)), 1):
        slurm.until_state(job, State.CANCELLED)
        assert re.fullmatch("ready\n" + line(job), slurm.read(f"out-{index}"))


def test_it_goes_to_the_file_of_stderr_that_the_job_began_with(slurm: Slurm) -> None:
    """Also where the script has another one since, and where the file has another name."""
    job = start(slurm, f"exec 2>other; mv err moved; echo new > err; {SLEEPS}", "-e", "err")
    slurm("scancel", str(job))
    slurm.until_state(job, State.CANCELLED)
    assert (slurm.read("out"), slurm.read("other"), slurm.read("err")) == ("ready\n", "", "new\n")
    assert re.fullmatch(line(job), slurm.read("moved"))


def test_it_is_not_written_to_what_is_not_a_file(slurm: Slurm) -> None:
    """A FIFO's reader sees the job's own lines only; a FIFO that nobody reads holds nothing up."""
    os.mkfifo(slurm.folder / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=slurm.folder, stdout=subprocess.PIPE, text=True) as reader:
        job = slurm.submit("-o", "out", "-e", "pipe", "--wrap", "echo mine >&2; echo ready; sleep 100")
        slurm.until_file("out", "ready")
        slurm("scancel", str(job))
        slurm.until_state(job, State.CANCELLED)
        assert reader.communicate(timeout=30)[0] == "mine\n"
    assert slurm.read("out") == "ready\n"
    quiet = start(slurm, SLEEPS, "-e", "none")
    slurm("scancel", str(quiet))
    slurm.until_state(quiet, State.CANCELLED)
    assert slurm.read("out") == "ready\n"


def test_it_is_not_written_about_other_ends(slurm: Slurm) -> None:
    """A job that ends by itself, by a signal that somebody sent, or before it was cancelled, has only its own output.

    (Slurm calls a script that `scancel --batch -s TERM` or `--signal=B:TERM` has signalled cancelled.)
    """
    fails = slurm.submit("-o", "fails", "--wrap", "echo mine; kill -TERM $$")
    warned = slurm.submit("-o", "warned", "-t", "1", "--signal=B:TERM@59", "--wrap", TRAPS)
    slurm.until_settled(fails)
    slurm("scancel", str(fails))
    slurm.until_settled(warned)
    asked = start(slurm, TRAPS)
    slurm("scancel", "-b", "-s", "TERM", str(asked))
    slurm.until_settled(asked)
    assert slurm.read("fails") == "mine\n"
    assert [slurm.read(name).replace("Terminated\n", "") for name in ("warned", "out")] == ["ready\ntrapped\n"] * 2


def test_jobs_of_aver_have_only_what_they_wrote(slurm: Slurm) -> None:
    """`aver submit` and `aver run` of a command, and of a batch script."""
    aver = [sys.executable, "-m", "aver"]
    script = slurm.script(f"#!/bin/bash\n#SBATCH -o out\n{SLEEPS}\n")
    subprocess.run([*aver, "submit", script], cwd=slurm.folder, env=slurm.environment, check=True, timeout=60)
    slurm.until_file("out", "ready")
    subprocess.run([*aver, "cancel", "1"], cwd=slurm.folder, env=slurm.environment, check=True, timeout=60)
    slurm.until_state(1, State.CANCELLED)
    assert slurm.read("out") == "ready\n"


def test_it_is_written_once_by_a_coordinator_that_dies(slurm: Slurm) -> None:
    """Killed after it has passed the cancellation on; the next one passes it on again."""
    job = start(slurm, "trap '' TERM; echo ready; while :; do sleep 0.02; done")
    slurm("scancel", str(job))
    slurm.until_file("out", "CANCELLED")
    slurm.kill_coordinator()
    slurm("squeue")
    slurm("scancel", "-s", "KILL", str(job))
    slurm.until_state(job, State.CANCELLED)
    assert re.fullmatch("ready\n" + line(job), slurm.read("out")), slurm.read("out")


def test_it_is_written_without_a_coordinator(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness enforces the limit, and it alone writes."""
    monkeypatch.setenv("AVER_RESTART", "no")
    job = start(slurm, SLEEPS, "-t", "0:03")
    slurm.kill_coordinator()
    slurm.until_file("out", "DUE TO TIME LIMIT")
    slurm("squeue")
    slurm.until_state(job, State.TIMEOUT)
    assert re.fullmatch("ready\n" + line(job, " DUE TO TIME LIMIT"), slurm.read("out")), slurm.read("out")
