"""What a step has from the process that calls srun: its soft limits; and srun called inside a step."""

from __future__ import annotations

import pytest
from slurm_commands import Slurm

from aver.model.states import State

SHOWS = "sh -c 'echo $(ulimit -Ss) $(ulimit -Sn) $(ulimit -Hn)'"


def output(slurm: Slurm, *lines: str, options: tuple[str, ...] = ()) -> list[str]:
    """What a batch script prints."""
    script = slurm.script("\n".join(["#!/bin/bash", *lines, ""]))
    job = slurm.submit("-o", "job.out", *options, script)
    assert slurm.until_settled(job).state is State.COMPLETED, slurm.read("job.out")
    return slurm.read("job.out").splitlines()


def test_a_scripts_limits_reach_its_steps(slurm: Slurm) -> None:
    """Soft limits are srun's own, as Slurm propagates them; hard ones stay the job's, though bash set both."""
    before, hard, inside = output(slurm, "ulimit -Ss", "ulimit -Hn", "ulimit -Ss 4321; ulimit -n 77", f"srun {SHOWS}")
    assert before != "4321"
    assert inside == f"4321 77 {hard}"


@pytest.mark.parametrize(
    ("propagate", "shown"),
    [("--propagate=NONE", "8192 99"), ("--propagate=STACK", "4321 99"), ("--propagate=RLIMIT_NOFILE", "8192 77"),
     ("--propagate", "4321 77"), ("--propagate=ALL", "4321 77"), ("--propagate=stack,nofile", "4321 77")],
)  # fmt: skip
def test_propagate_chooses_the_limits(slurm: Slurm, propagate: str, shown: str) -> None:
    """What is not propagated is as it was when the job was submitted."""
    script = slurm.script(f"#!/bin/bash\nulimit -Ss 4321; ulimit -Sn 77\nsrun {propagate} {SHOWS}\n")
    typed = f"ulimit -Ss 8192; ulimit -Sn 99; exec {slurm.home}/bin/sbatch --wait -o job.out {script}"
    assert slurm.shell(typed).status == 0
    assert slurm.read("job.out").startswith(shown)


def test_a_limit_that_there_is_not_is_refused(slurm: Slurm) -> None:
    assert output(slurm, "srun --propagate=BAD true 2>&1; echo $?") == [
        "srun: error: Bad rlimit name: BAD",
        "srun: error: --propagate=BAD is not valid.",
        "1",
    ]


INNER = "sh -c 'echo step $SLURM_STEP_ID of job $SLURM_JOB_ID has $SLURM_NTASKS'"


@pytest.mark.parametrize(
    ("outer", "inner"), [("--overlap", ""), ("", "--overlap"), ("--exact", "--exact"), ("--overlap", "--overlap")]
)
def test_srun_inside_a_step_is_another_step(slurm: Slurm, outer: str, inner: str) -> None:
    (slurm.folder / "inner").write_text(f'echo outer $SLURM_STEP_ID\nsrun {inner} -n1 {INNER}\necho "status $?"\n')
    said = output(slurm, f"srun {outer} -n1 sh inner", options=("-n2",))
    assert said == ["outer 0", "step 1 of job 1 has 1", "status 0"]
    assert "1.1|COMPLETED" in slurm("sacct", "-nPo", "jobid,state", "-j", "1").out


def test_inside_a_step_without_room_srun_waits_as_slurms(slurm: Slurm) -> None:
    """The outer step has all cpus of the job. srun waits, says so, and is ended with the outer step."""
    (slurm.folder / "inner").write_text("srun -n1 touch ran\n")
    script = slurm.script("#!/bin/bash\nsrun -n1 sh inner\necho status $?\n")
    job = slurm.submit("-n2", "-o", "job.out", script)
    slurm.until_file("job.out", f"srun: Job {job} step creation temporarily disabled, retrying")
    assert slurm("scancel", f"{job}.0").status == 0
    assert slurm.until_settled(job).state is State.COMPLETED
    assert "status 137" in slurm.read("job.out")
    assert not (slurm.folder / "ran").exists()


def test_a_step_inside_a_step_of_a_job_that_was_cancelled_ends(slurm: Slurm) -> None:
    (slurm.folder / "inner").write_text("srun --overlap -n1 sh -c 'echo ready; exec sleep 300'\n")
    job = slurm.submit("-o", "job.out", slurm.script("#!/bin/bash\nsrun -n1 sh inner\n"))
    slurm.until_file("job.out", "ready")
    assert slurm("scancel", str(job)).status == 0
    assert slurm.until_settled(job).state is State.CANCELLED
    assert slurm("squeue", "-s", "-h").out == ""
