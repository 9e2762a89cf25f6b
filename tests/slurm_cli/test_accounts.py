"""sacctmgr, sshare, sstat and seff."""

from __future__ import annotations

import getpass
import re

import pytest
from queue_past import Call, Past
from slurm_commands import Slurm

from aver.model.states import State

USER = getpass.getuser()
NOT_SERVED = "is not served by aver: on one machine there are no accounts to change\n"


def test_a_user_is_shown_as_slurm_shows_one(empty_past: Past, call: Call) -> None:
    """Header, widths, and the caller."""
    reply = call("sacctmgr", "show", "user")
    assert reply.lines[:2] == ["      User   Def Acct     Admin ", "---------- ---------- --------- "]
    assert reply.lines[2] == f"{USER[:10]:>10} {'':>10} {'None':>9} "
    assert call("sacctmgr", "-nP", "list", "user", USER, "format=user,adminlevel").out == f"{USER}|None\n"
    assert call("sacctmgr", "-n", "show", "user", "nobody-else").out == ""


def test_associations_and_what_clients_ask_of_them(empty_past: Past, call: Call) -> None:
    """One, without an account; any account that is asked for is accepted; the line that Snakemake calls is blank."""
    asked = "cluster,account,user,qos"
    assert call("sacctmgr", "-nP", "show", "assoc", f"user={USER}", f"format={asked}").out == f"aver||{USER}|normal\n"
    where = ("where", f"user={USER}", "account=physics", "cluster=aver")
    assert call("sacctmgr", "-nP", "list", "associations", *where, f"format={asked}").out == (
        f"aver|physics|{USER}|normal\n"
    )
    assert call("sacctmgr", "-n", "-s", "list", "user", USER, "format=account%256").out.strip() == ""
    assert call("sshare", "-U", "--format", "Account%256", "--noheader").out == ""
    header = call("sacctmgr", "-p", "show", "assoc").lines[0]
    assert header.startswith("Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|")


def test_qos_cluster_and_tres(empty_past: Past, call: Call) -> None:
    """The one of each, under Slurm's headers; cut names and widths."""
    assert call("sacctmgr", "-P", "show", "qos", "format=Name,Prio,MaxWall").out == "Name|Priority|MaxWall\nnormal|0|\n"
    assert call("sacctmgr", "-nP", "show", "cluster", "format=cluster,nodecount").out == "aver|1\n"
    assert "gres|gpu|1001" in call("sacctmgr", "-nP", "show", "tres").lines
    assert call("sacctmgr", "-n", "show", "qos", "format=name%3").out == "no+ \n"
    assert call("sacctmgr", "-nP", "show", "account").out == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["add", "user", "x"], f"sacctmgr: error: add {NOT_SERVED}"),
        (["-i", "modify", "user", "x"], f"sacctmgr: error: modify {NOT_SERVED}"),
        (["show", "user", "format=foo"], " Unknown field 'foo'\n"),
        (["show", "assoc", "foo=1"], " Unknown condition: foo=1\n Use keyword 'set' to modify value\n"),
        (["frobnicate"], "invalid keyword: frobnicate\n"),
        (["show", "stats"], "sacctmgr: error: show stats is not served by aver\n"),
    ],
)  # fmt: skip
def test_refusals_of_sacctmgr(empty_past: Past, call: Call, argv: list[str], said: str) -> None:
    """One reason each, exit 1."""
    reply = call("sacctmgr", *argv)
    assert (reply.status, reply.out, reply.err) == (1, "", said)


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
