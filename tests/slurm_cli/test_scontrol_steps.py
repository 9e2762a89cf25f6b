"""`scontrol update StepId=`: the time limit of a running step, in the words of a real Slurm 22.05."""

from __future__ import annotations

import subprocess
import sys

import pytest
from slurm_commands import Slurm

from aver.model.states import State

NO_STEP = "slurm_update error: Invalid job id specified\n"


def start(slurm: Slurm, step: str = "srun -t 5 sleep 100") -> int:
    """A job whose first step runs."""
    job = slurm.submit("-n", "2", "-o", "out", "--wrap", f"echo ready; {step}; echo exit $?")
    slurm.until_file("out", "ready")
    for _ in range(500):
        if "sleep" in slurm("squeue", "-s", "-h", "-o", "%j").out:
            return job
    raise AssertionError("the step never began")


def limits(slurm: Slurm, job: int) -> list[str]:
    """Those of the steps that run, but for the script's."""
    said = slurm("squeue", "-s", "-h", "-j", str(job), "-o", "%i %l").out.splitlines()
    return sorted(one.partition(".")[2] for one in said if ".batch" not in one)


def test_what_is_said(slurm: Slurm) -> None:
    """Each as Slurm 22.05 answers it."""
    job = start(slurm)
    cases = [
        (["StepId={job}.0", "TimeLimit=2"], "", 0, "0 2:00"),
        (["StepId={job}", "TimeLimit=3"], "", 0, "0 3:00"),
        (["StepId={job}.9", "TimeLimit=2"], NO_STEP, 1, "0 3:00"),
        (["StepId={job}.batch", "TimeLimit=2"], NO_STEP, 1, "0 3:00"),
        (["StepId=99999.0", "TimeLimit=2"], NO_STEP, 1, "0 3:00"),
        (["StepId=99999", "TimeLimit=2"], NO_STEP, 1, "0 3:00"),
        (["StepId=x", "TimeLimit=2"], "Invalid StepID parameter: StepId=x\nRequest aborted\n", 1, "0 3:00"),
        (["StepId={job}.0", "TimeLimit=abc"], "scontrol: error: Invalid TimeLimit value\n", 1, "0 3:00"),
        (["StepId={job}.0"], "No changes specified\n", 1, "0 3:00"),
        (["StepId={job}.0", "TimeLimit=4", "Comment=x"],
         "Update of this parameter is not supported: Comment=x\nRequest aborted\n", 1, "0 3:00"),
        (["StepId", "{job}.0"],
         "Invalid input: StepId\nRequest aborted\nslurm_update error: No error\n", 1, "0 3:00"),
        (["StepId={job}.0", "TimeLimit=+4"], "", 0, "0 7:00"),
        (["StepId={job}.0", "TimeLimit=-1"], "", 0, "0 6:00"),
        (["StepId={job}.0", "TimeLimit=-7"],
         "scontrol: error: TimeLimit decrement larger than current time limit (7 > 6)\n", 1, "0 6:00"),
        (["StepId={job}.0", "TimeLimit=0"], "", 0, "0 6:00"),
        (["StepId={job}.0", "TimeLimit=UNLIMITED"], "", 0, "0 UNLIMITED"),
        (["stepid={job}.0", "Time=60"], "", 0, "0 1:00:00"),
    ]  # fmt: skip
    for words, err, status, shown in cases:
        said = slurm("scontrol", "update", *[word.format(job=job) for word in words])
        assert (said.err, said.status, said.out, limits(slurm, job)) == (err, status, "", [shown]), words
    assert "TimeLimit=01:00:00" in slurm("scontrol", "show", "step", f"{job}.0").out
    slurm("scancel", str(job))
    slurm.until_settled(job)
    gone = [slurm("scontrol", "update", f"StepId={name}", "TimeLimit=2") for name in (str(job), f"{job}.0")]
    assert [(said.err, said.status) for said in gone] == [("", 0), (NO_STEP, 1)]


@pytest.mark.parametrize("tasks", [1, 2])
def test_the_new_limit_ends_the_step_and_not_its_job(slurm: Slurm, tasks: int) -> None:
    job = start(slurm, f"srun -n{tasks} -t 5 sleep 100")
    assert slurm("scontrol", "update", f"StepId={job}.0", "TimeLimit=0:01").status == 0
    slurm.until_state(job, State.COMPLETED)
    assert "DUE TO TIME LIMIT" in slurm.read("out")
    assert slurm.read("out").endswith("exit 143\n")
    assert slurm("sacct", "-n", "-P", "-j", f"{job}.0", "-o", "State").out == "TIMEOUT\n"


def test_a_longer_limit_lets_the_step_end_by_itself(slurm: Slurm) -> None:
    job = start(slurm, "srun -t 0:03 sleep 5")
    assert slurm("scontrol", "update", f"StepId={job}.0", "TimeLimit=10").status == 0
    slurm.until_state(job, State.COMPLETED)
    assert slurm.read("out").endswith("exit 0\n")


def test_another_step_of_the_job_keeps_its_limit(slurm: Slurm) -> None:
    steps = "srun --overlap -t 5 sleep 100 & srun --overlap -t 6 sleep 100 & wait"
    job = slurm.submit("-n", "2", "-o", "out", "--wrap", steps)
    for _ in range(500):
        if len(limits(slurm, job)) == 2:
            break
    before = dict(one.split() for one in limits(slurm, job))
    slurm("scontrol", "update", f"StepId={job}.1", "TimeLimit=9")
    assert dict(one.split() for one in limits(slurm, job)) == {**before, "1": "9:00"}
    slurm("scancel", str(job))
    slurm.until_settled(job)


def test_a_change_survives_the_coordinator(slurm: Slurm) -> None:
    """It is stored before anything follows from it; the next coordinator gives it to the step's witness again."""
    job = start(slurm)
    assert slurm("scontrol", "update", f"StepId={job}.0", "TimeLimit=0:04").status == 0
    slurm.kill_coordinator()
    slurm("squeue")
    assert limits(slurm, job) == ["0 0:04"]
    slurm.until_state(job, State.COMPLETED)
    assert slurm("sacct", "-n", "-P", "-j", f"{job}.0", "-o", "State").out == "TIMEOUT\n"


def test_the_history_of_the_job_has_it(slurm: Slurm) -> None:
    job = start(slurm)
    slurm("scontrol", "update", f"StepId={job}.0", "TimeLimit=2")
    told = subprocess.run(
        [sys.executable, "-m", "aver", "timeline", str(job)],
        env=slurm.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert "update step" in told
