"""seff: how well a job used what it asked for."""

from __future__ import annotations

import getpass
import re

from slurm_commands import Slurm

from aver.model.states import State

USER = getpass.getuser()


def test_seff_of_a_job_that_ended(slurm: Slurm) -> None:
    """The lines of the contributed script, with the whole exit code and what was measured."""
    script = "python3 -c 'import time; held = bytearray(20 << 20); time.sleep(0.3)'; exit 137"
    job = slurm.submit("-o", "/dev/null", "--mem=100", "--wrap", script)
    slurm.until_settled(job)
    lines = slurm("seff", str(job)).out.splitlines()
    assert lines[0] == f"Job ID: {job}"
    assert lines[1] == "Cluster: aver"
    assert lines[2].startswith(f"User/Group: {USER}/")
    assert lines[3:5] == ["State: FAILED (exit code 137)", "Cores: 1"]
    assert re.fullmatch(r"CPU Utilized: 00:00:0\d", lines[5])
    assert re.fullmatch(r"CPU Efficiency: \d+\.\d\d% of 00:00:\d\d core-walltime", lines[6])
    assert re.fullmatch(r"Job Wall-clock time: 00:00:\d\d", lines[7])
    assert re.fullmatch(r"Memory Utilized: \d+\.\d\d [KM]B", lines[8])
    assert re.fullmatch(r"Memory Efficiency: \d+\.\d\d% of 100\.00 MB \(100\.00 MB/node\)", lines[9])


def test_seff_of_what_ran_out_of_memory(slurm: Slurm) -> None:
    """The exit is that of the script; 125 is Slurm's mark in 0:125, and no signal."""
    hungry = "import time; held = b'x' * (300 << 20); time.sleep(60)"
    job = slurm.submit("-o", "/dev/null", "--mem=30", "--wrap", f'exec python3 -c "{hungry}"')
    assert slurm.until_settled(job).state is State.OUT_OF_MEMORY
    assert "State: OUT_OF_MEMORY (exit code 137)\n" in slurm("seff", str(job)).out


def test_seff_of_jobs_that_wait_and_run(slurm: Slurm) -> None:
    """No efficiency before the start; a warning while it runs."""
    held = slurm.submit("-H", "--wrap", "true", "-o", "/dev/null")
    assert slurm("seff", str(held)).out.endswith("Efficiency not available for jobs in the PENDING state.\n")
    running = slurm.submit("-o", "/dev/null", "--wrap", "sleep 60")
    slurm.until_state(running, State.RUNNING)
    said = slurm("seff", str(running)).out
    assert "State: RUNNING\n" in said
    assert said.endswith("WARNING: Efficiency statistics may be misleading for RUNNING jobs.\n")
    assert slurm("seff", "999").err == "Job not found.\n"
    slurm("scancel", str(running))


def test_seff_without_a_job(slurm: Slurm) -> None:
    """Its usage on stdout and exit 1, as Slurm's script does, also where that was asked for."""
    for words in ((), ("-h",), ("1", "2")):
        said = slurm("seff", *words)
        assert (said.status, said.err, said.out.splitlines()[0]) == (1, "", "Usage: seff [Options] <Jobid>"), words
