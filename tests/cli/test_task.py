"""`aver task`: a task under its witness inside a job on Slurm, and the plain command anywhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def run(*words: str, facts: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    outside = ("SLURM", "AVER_REC", "OMPI_", "PMI", "MPI_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(outside)}
    return subprocess.run(
        [sys.executable, "-m", "aver", "task", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **facts},
    )


@pytest.fixture
def job(tmp_path: Path, witness_binary: Path) -> dict[str, str]:
    """The variables of a job that is to leave records in the test's folder."""
    return {"AVER_RECORDS": str(tmp_path), "AVER_RECORD_KEY": "7-1.r0"}


def test_outside_of_a_job_the_command_runs_as_it_is(tmp_path: Path) -> None:
    """No record, no word of ours, the command's own end; also its words are its own."""
    done = run("--", "sh", "-c", 'echo "$1"; exit 7', "sh", "--help", facts={})
    assert (done.returncode, done.stdout, done.stderr) == (7, "--help\n", "")
    assert run("--", "/no/such", facts={}).returncode == 127
    assert run("--", "/etc/passwd", facts={}).returncode == 126
    assert run("true", facts={}).returncode == 2
    assert run("--", facts={}).returncode == 2


def test_task_of_a_step_leaves_its_record(job: dict[str, str], tmp_path: Path) -> None:
    """In a step the record is the step's and the task's, as srun's tasks have it."""
    done = run("--", "sh", "-c", "exit 200", facts={**job, "SLURM_STEP_ID": "2", "SLURM_PROCID": "1"})
    assert done.returncode == 200
    assert [path.name for path in tmp_path.iterdir()] == ["7-1.r0.s2.t1"]


@pytest.mark.parametrize(
    ("facts", "tasks"),
    [
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "PMIX_NAMESPACE": "launch@1"}, 8),
        ({"PMI_RANK": "7", "PMI_SIZE": "8", "MPI_LOCALRANKID": "3", "MPI_LOCALNRANKS": "4"}, 4),
    ],
    ids=["Open MPI", "Hydra"],
)
def test_ranks_of_another_launcher_are_a_step_of_their_own(
    job: dict[str, str], tmp_path: Path, facts: dict[str, str], tasks: int
) -> None:
    """Its number is none of Slurm's, so that no record is taken for that of the step that mpirun runs in."""
    inside = {**job, **facts, "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}
    done = run("--", "sh", "-c", "echo $SLURM_STEP_ID; exit 5", facts=inside)
    assert (done.returncode, done.stdout) == (5, "0\n")
    (record,) = tmp_path.iterdir()
    said = json.loads(record.read_bytes()[18:])
    assert (said["key"], said["tasks"], said["name"]) == (record.name, tasks, "sh")
    attempt, step, task = record.name.rsplit(".", 2)
    assert (attempt, task) == ("7-1.r0", "t3")
    assert 10**8 <= int(step.removeprefix("s")) < 10**9
