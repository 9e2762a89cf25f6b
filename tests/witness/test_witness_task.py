"""The form for the tasks of a step: each has its record, and the step's launcher sees how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from witness_driver import read_lines

Run = Callable[..., "subprocess.CompletedProcess[str]"]
STEP = {"SLURM_STEP_ID": "3", "SLURM_PROCID": "12"}


@pytest.fixture
def task(witness_binary: Path, tmp_path: Path) -> Run:
    """Run a command as a task; its records are in the test's folder."""
    records = tmp_path / "records"
    records.mkdir()

    def run(*words: str, facts: Mapping[str, str] = STEP, key: str = "7-1.r0") -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        return subprocess.run(
            [str(witness_binary), "task", "--records", str(records), "--key", key, "--", *words],
            capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60, env={**kept, **facts},
        )  # fmt: skip

    return run


def test_record_is_named_after_step_and_task(task: Run, tmp_path: Path) -> None:
    """The record's name is the key, the step and the task, and the record has the same key."""
    done = task("sh", "-c", "exit 130")
    assert (done.returncode, done.stderr) == (130, "")
    (record,) = (tmp_path / "records").iterdir()
    (line,) = read_lines(record)
    assert (record.name, line["key"], line["raw"]) == ("7-1.r0.s3.t12", "7-1.r0.s3.t12", 130 << 8)


def test_ends_by_the_same_signal(task: Run) -> None:
    """A task that a signal ended is seen so by its launcher."""
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
        assert task("sh", "-c", f"kill -{number} $$").returncode == -number


def test_launch_failure_is_the_errno(task: Run, tmp_path: Path) -> None:
    """A command that can't be started ends with the errno, as under srun; the record has errno and path."""
    done = task("/no/such")
    assert (done.returncode, "can't start /no/such" in done.stderr) == (2, True)
    (line,) = read_lines(tmp_path / "records" / "7-1.r0.s3.t12")
    assert (line["raw"], line["launch"]) == (None, {"op": "exec", "errno": 2, "path": "/no/such"})
    assert task("/etc/passwd").returncode == 13


@pytest.mark.parametrize(
    "facts", [{}, {"SLURM_STEP_ID": "3"}, {"SLURM_PROCID": "1"}, {"SLURM_STEP_ID": "../x", "SLURM_PROCID": "1"},
              {"SLURM_STEP_ID": "1", "SLURM_PROCID": "1" * 40}],
)  # fmt: skip
def test_unknown_task_runs_all_the_same(task: Run, tmp_path: Path, facts: dict[str, str]) -> None:
    """Without a step and a task there is no record and one sentence; the command runs, and its end is kept."""
    done = task("sh", "-c", "echo ran; exit 3", facts=facts)
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert done.stderr.startswith("aver-witness: no exit record: ")
    assert done.stderr.count("\n") == 1
    assert list((tmp_path / "records").iterdir()) == []


def test_key_that_is_too_long_runs_all_the_same(task: Run, tmp_path: Path) -> None:
    """A key that leaves no room for step and task makes no record, and ends no task."""
    done = task("sh", "-c", "exit 3", key="k" * 127)
    assert (done.returncode, "no exit record" in done.stderr) == (3, True)


def test_folder_that_is_gone_runs_all_the_same(task: Run, tmp_path: Path) -> None:
    """The record's folder is gone: one sentence, and the task's own end."""
    (tmp_path / "records").rmdir()
    done = task("sh", "-c", "exit 4")
    assert (done.returncode, "can't write the exit record" in done.stderr) == (4, True)
