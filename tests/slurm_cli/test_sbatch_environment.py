"""What a batch script finds in its environment: the SLURM_* variables, as measured on a real Slurm."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from slurm_commands import Slurm

from aver.model.states import State
from aver.spec.sbatch.call import BatchCall
from aver.spec.sbatch.environment import environment_of

HOST = socket.gethostname()
NODE = HOST.partition(".")[0]
ASKED_FOR_ONLY = {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU"}


def variables(slurm: Slurm, *options: str, **env: str) -> dict[str, str]:
    said = slurm("sbatch", "--wait", "-Q", "-o", "out", *options, "--wrap", "env -0", env=env)
    assert said.status == 0, said
    pairs = slurm.read("out").split("\0")
    found = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return {name: value for name, value in found.items() if name.startswith(("SLURM", "ENVIRONMENT"))}


def test_a_plain_job_has_what_names_it(slurm: Slurm) -> None:
    """Number, name, folder, host, node, user, partition; what was not asked for is not there."""
    found = variables(slurm)
    expected = {
        "ENVIRONMENT": "BATCH",
        "SLURMD_NODENAME": NODE,
        "SLURM_CLUSTER_NAME": "aver",
        "SLURM_CPUS_ON_NODE": "1",
        "SLURM_GTIDS": "0",
        "SLURM_JOBID": "1",
        "SLURM_JOB_CPUS_PER_NODE": "1",
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NAME": "wrap",
        "SLURM_JOB_NODELIST": NODE,
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_PARTITION": "main",
        "SLURM_JOB_QOS": "normal",
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_LOCALID": "0",
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": NODE,
        "SLURM_PROCID": "0",
        "SLURM_SUBMIT_DIR": str(slurm.folder),
        "SLURM_SUBMIT_HOST": HOST,
        "SLURM_TASKS_PER_NODE": "1",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert not ASKED_FOR_ONLY & set(found)
    assert "SLURM_RESTART_COUNT" not in found


def test_what_was_asked_for_is_said(slurm: Slurm) -> None:
    """Tasks, cpus of a task, memory, partition, account and name."""
    found = variables(slurm, "-n2", "-c1", "--mem=100", "-J", "name", "-p", "big", "-A", "acct")
    expected = {
        "SLURM_NTASKS": "2",
        "SLURM_NPROCS": "2",
        "SLURM_TASKS_PER_NODE": "2",
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_MEM_PER_NODE": "100",
        "SLURM_JOB_NAME": "name",
        "SLURM_JOB_PARTITION": "big",
        "SLURM_JOB_ACCOUNT": "acct",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert variables(slurm, "--mem-per-cpu=50").get("SLURM_MEM_PER_CPU") == "50"


def test_an_outer_jobs_variables_do_not_leak_into_an_inner_one(slurm: Slurm) -> None:
    """A job that is submitted inside a job has its own numbers, and none that it did not ask for."""
    outer = {"SLURM_NTASKS": "8", "SLURM_ARRAY_TASK_ID": "3", "SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "1"}
    found = variables(slurm, **outer, SLURM_HINT="kept")
    assert found["SLURM_JOB_ID"] == "1"
    assert not {"SLURM_NTASKS", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"} & set(found)
    assert found["SLURM_HINT"] == "kept"


def test_export_says_so_to_the_job() -> None:
    """SLURM_EXPORT_ENV and SLURM_GET_USER_ENV, as Slurm sets them; without ALL the submitter's own are gone."""
    environ = {"HOME": "/h", "PATH": "/p", "MINE": "1", "SBATCH_EXPORT": "x"}

    def inherited(text: str | None) -> dict[str, str]:
        call = BatchCall(0.0)
        if text is not None:
            call.take("export", text)
        return dict(pair.split("=", 1) for pair in environment_of(call.values, environ))

    assert inherited(None) == {"HOME": "/h", "PATH": "/p", "MINE": "1"}
    none = inherited("NONE")
    assert (none["HOME"], none["SLURM_EXPORT_ENV"], none["SLURM_GET_USER_ENV"]) == ("/h", "NONE", "1")
    assert "MINE" not in none
    assert inherited("MINE,A=b=c")["A"] == "b=c"


def test_a_job_of_aver_run_has_the_commands_and_not_the_variables(slurm: Slurm) -> None:
    """Only what came through Slurm's commands looks like a Slurm job to the programs in it."""
    words = [sys.executable, "-m", "aver", "run", "--", "sh", "-c", "command -v sbatch; echo ${SLURM_JOB_ID-none}"]
    done = subprocess.run(words, cwd=slurm.folder, env=slurm.environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(slurm.home / "bin" / "sbatch"), "none"]
    assert slurm.job(1).state is State.COMPLETED


def test_a_jobs_open_mode_is_that_of_its_steps(slurm: Slurm) -> None:
    """`sbatch --open-mode=append`: a step's own file is appended to as well, as in Slurm."""
    (slurm.folder / "step.txt").write_text("before\n")
    job = slurm.submit("--open-mode=append", "-o", "/dev/null", "--wrap", "srun -o step.txt echo after")
    slurm.until_settled(job)
    assert slurm.read("step.txt") == "before\nafter\n"


def test_overcommit_is_told(slurm: Slurm) -> None:
    """`-O` sets SLURM_OVERCOMMIT in scripts and in the commands of salloc; without it there is none."""
    text = "echo ${SLURM_OVERCOMMIT-none}"
    slurm("sbatch", "--wait", "-O", "-o", "job.out", "--wrap", text)
    assert slurm.read("job.out") == "1\n"
    assert slurm("salloc", "-O", "sh", "-c", text).out == "1\n"
    assert slurm("salloc", "sh", "-c", text).out == "none\n"


def test_names_that_no_shell_can_read_are_exported(slurm: Slurm) -> None:
    """Slurm takes them; programs other than sh see them."""
    (slurm.folder / "job.sh").write_text("#!/bin/bash\nenv\n")
    said = slurm("sbatch", "--wait", "-o", "job.out", "--export=ALL,TEST.17=123", "job.sh")
    assert said.status == 0
    assert "TEST.17=123" in slurm.read("job.out").splitlines()
