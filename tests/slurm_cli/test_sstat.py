"""sstat: what runs."""

from __future__ import annotations

import re

from slurm_commands import Slurm


def test_sstat_shows_what_runs(slurm: Slurm) -> None:
    """A step that holds memory and one of the script; sizes in K, and whole with --noconvert."""
    hold = "python3 -c 'x = bytearray(60_000_000); print(1, flush=True); import time; time.sleep(60)'"
    job = slurm.submit("-o", "out", "--wrap", f"srun {hold}")
    slurm.until_file("out", "1")
    said = slurm("sstat", "-nP", "-j", str(job), "-o", "JobID,MaxRSS,NTasks,AveCPU,MaxVMSize")
    number, memory, tasks, cpu, virtual = said.out.strip().split("|")
    assert (number, tasks, virtual) == (f"{job}.0", "1", "")
    assert memory.endswith("K")
    assert int(memory[:-1]) > 50_000
    assert re.fullmatch(r"\d\d:\d\d:\d\d", cpu)
    both = slurm("sstat", "-nP", "--noconvert", "-a", "-j", str(job), "-o", "jobid,maxrss").out.splitlines()
    assert [line.partition("|")[0] for line in both] == [f"{job}.0", f"{job}.batch"]
    assert int(both[0].partition("|")[2]) > 50_000_000
    pids = slurm("sstat", "-n", "-i", "-j", f"{job}.0").out.split()
    assert pids[0] == f"{job}.0"
    slurm("scancel", str(job))
    slurm.until_settled(job)
    ended = slurm("sstat", "-n", "-j", str(job))
    assert (ended.status, ended.out, ended.err) == (0, "", f"sstat: error: no steps running for job {job}\n")


def test_refusals_of_sstat(slurm: Slurm) -> None:
    """Slurm's words, exit 1."""
    assert slurm("sstat").err == "sstat: error: You didn't give me any jobs to stat.\n"
    assert slurm("sstat", "-j", "x").err == "sstat: fatal: Bad job/step specified: x\n"
    assert slurm("sstat", "-j", "999").status == 1
    assert slurm("sstat", "-j", "1", "-o", "foo").err == 'sstat: error: Invalid field requested: "foo"\n'
    assert "AveCPU              AveCPUFreq          AveDiskRead" in slurm("sstat", "-e").out
