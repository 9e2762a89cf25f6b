"""scontrol listpids, pidinfo and notify, and `update JobName=`."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from slurm_commands import DEADLINE_S, Slurm

SCRIPT = "#!/bin/bash\nsrun -n2 --overlap sh -c 'touch ready.$SLURM_PROCID; sleep 60; true'\n"


def running(slurm: Slurm, *options: str) -> int:
    job = slurm.submit("-n2", "-o", "job.out", *options, slurm.script(SCRIPT))
    deadline = time.monotonic() + DEADLINE_S
    while not all((slurm.folder / f"ready.{task}").exists() for task in (0, 1)):
        assert time.monotonic() < deadline, slurm("squeue", "-s").out
        time.sleep(0.05)
    return job


def test_listpids_has_each_task_and_the_script(slurm: Slurm) -> None:
    job = running(slurm)
    header, *rows = [line.split() for line in slurm("scontrol", "listpids", str(job)).out.splitlines()]
    assert header == ["PID", "JOBID", "STEPID", "LOCALID", "GLOBALID"]
    assert [row[2:] for row in rows if row[3] != "-"] == [["0", "0", "0"], ["0", "1", "1"], ["batch", "0", "0"]]
    for pid, number, *_ in rows:
        assert number == str(job)
        os.kill(int(pid), 0)
    step = slurm("scontrol", "listpids", f"{job}.0").out.splitlines()[1:]
    assert {line.split()[2] for line in step} == {"0"}
    slurm("scancel", str(job))
    slurm.until_settled(job)
    assert slurm("scontrol", "listpids", str(job)).status == 1


def test_pidinfo_names_the_job(slurm: Slurm) -> None:
    job = running(slurm, "-t", "10")
    pid = slurm("scontrol", "listpids", str(job)).out.splitlines()[1].split()[0]
    first, second = slurm("scontrol", "pidinfo", pid).out.splitlines()
    assert first.startswith(f"Slurm JobId={job} ends at ")
    assert 500 < int(second.removeprefix("Job remaining time is ").removesuffix(" seconds")) <= 600
    assert slurm("scontrol", "pidinfo", "1").err == "Failed to locate job for requested pid\n"
    slurm("scancel", str(job))


@pytest.mark.parametrize("program", ["srun", "salloc"])
def test_notify_writes_to_the_stderr_of_srun_and_salloc(slurm: Slurm, program: str) -> None:
    """They gave it to their job; with the words that Slurm's own print."""
    call = ["sh", "-c", f"{slurm.home}/bin/{program} sh -c 'echo $SLURM_JOB_ID >id; sleep 60' 2>err"]
    with subprocess.Popen(call, cwd=slurm.folder, env=slurm.environment) as caller:
        slurm.until_file("id", "\n")
        job = slurm.read("id").strip()
        assert slurm("scontrol", "notify", job, "hello", "there").status == 0
        slurm.until_file("err", f"{program}: hello there\n")
        slurm("scancel", job)
        caller.wait(DEADLINE_S)


def test_notify_writes_to_the_scripts_stderr(slurm: Slurm) -> None:
    job = running(slurm)
    assert slurm("scontrol", "notify", str(job), "hello", "there").status == 0
    assert "slurmstepd: error: hello there\n" in slurm.read("job.out")
    slurm("scancel", str(job))
    slurm.until_settled(job)
    assert slurm("scontrol", "notify", str(job), "late").status == 1
    assert slurm("scontrol", "notify", "99", "nobody").status == 1


def test_update_by_name(slurm: Slurm) -> None:
    first, other, second = (slurm.submit("--hold", "-J", name, "--wrap", "true") for name in ("a", "b", "a"))
    assert slurm("scontrol", "update", "JobName=a", "TimeLimit=7").status == 0
    shown = {line.split()[0]: line.split()[1] for line in slurm("squeue", "-ho", "%A %l").out.splitlines()}
    assert shown == {str(first): "7:00", str(other): "UNLIMITED", str(second): "7:00"}
    refused = slurm("scontrol", "update", "JobName=none", "TimeLimit=7")
    assert (refused.status, refused.err) == (1, "scontrol: error: No jobs with name 'none'\n")
    refused = slurm("scontrol", "update", "JobName=a", "UserID=12345", "TimeLimit=9")
    assert (refused.status, refused.err) == (1, "scontrol: error: No jobs with user ID 12345 and name 'a'\n")
    assert slurm("scontrol", "update", "JobName=a", f"UserID={os.getuid()}", "TimeLimit=9").status == 0


def test_listpids_of_a_step_that_is_not_there(slurm: Slurm) -> None:
    job = slurm.submit("--wrap", "true")
    said = slurm("scontrol", "listpids", f"{job}.10")
    assert said.status == 1
    assert said.err.startswith(f"scontrol: error: StepId={job}.10 does not exist on node ")
