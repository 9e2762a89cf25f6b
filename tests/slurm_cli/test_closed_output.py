"""Slurm's commands whose standard streams are closed or full: what they are for is done, and nothing is a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from slurm_commands import Slurm

from aver.slurm_cli import output

SOURCE = Path(output.__file__).parents[2]
COMMANDS = ("squeue", "sinfo", "sacct", "scontrol show job", "scontrol show config", "sacctmgr list cluster", "sshare",
            "squeue --help", "sbatch --help", "scancel --help", "srun --help", "srun --version", "sbatch --version",
            "scontrol ping")  # fmt: skip
STREAMS = ("1>&-", "1>/dev/full", "1>&- 2>&-", "0<&- 1>&- 2>&-", "2>&-")


def bin_path(slurm: Slurm) -> str:
    return f"PATH={slurm.home}/bin:$PATH; "


@pytest.mark.parametrize("streams", STREAMS)
def test_reading_commands(slurm: Slurm, streams: str) -> None:
    """A closed stdout is none; a full one is said in one line, with status 1."""
    for command in COMMANDS:
        said = slurm.shell(f"{bin_path(slurm)}{command} {streams}")
        assert "Traceback" not in said.err, command
        assert "Exception" not in said.err, command
        if "/dev/full" in streams:
            assert (said.status, said.err.count("\n")) == (1, 1), (command, said)
            assert "No space left on device" in said.err
        else:
            assert said.status == 0, (command, said)


@pytest.mark.parametrize("streams", STREAMS)
def test_scancel_cancels(slurm: Slurm, streams: str) -> None:
    """Whatever its streams are."""
    job = slurm.submit("--wrap", "sleep 300")
    assert slurm.shell(f"{bin_path(slurm)}scancel {job} {streams}").status == 0
    assert slurm.until_settled(job).state == "CANCELLED"


@pytest.mark.parametrize("streams", STREAMS)
def test_sbatch_submits(slurm: Slurm, streams: str) -> None:
    """The job is there; where its number could not be written, stderr has it, and the status is 1."""
    said = slurm.shell(f"{bin_path(slurm)}sbatch --wrap 'touch done' {streams}")
    assert slurm.until_settled(1).state == "COMPLETED"
    if "/dev/full" in streams:
        assert said.status == 1
        assert "Submitted batch job 1" in said.err
    else:
        assert (said.status, said.err) == (0, "")


@pytest.mark.parametrize("streams", STREAMS)
def test_srun_runs(slurm: Slurm, streams: str) -> None:
    """As a job of its own, and as a step."""
    assert slurm.shell(f"{bin_path(slurm)}srun touch alone {streams}").status == 0
    assert slurm.read("alone") == ""
    job = slurm.submit("--wrap", f"srun touch step {streams}")
    assert slurm.until_settled(job).state == "COMPLETED"
    assert slurm.read("step") == ""


@pytest.mark.parametrize("options", ["-l", "-o 0", "-l -e err"])
@pytest.mark.parametrize("streams", ["1>&-", "1>/dev/full", "| head -n 1"])
def test_srun_that_copies_ends_as_its_step(slurm: Slurm, streams: str, options: str) -> None:
    """Lines that it can't write, with labels or of one task, are dropped: the step goes on, and its code is srun's."""
    step = f"srun {options} sh -c 'seq 20000; echo e >&2; touch done; exit 4'"
    job = slurm.submit("-o", "out", "--wrap", f"{{ {step}; echo code $? > code; }} {streams}")
    assert slurm.until_settled(job).state == "COMPLETED"
    assert slurm.read("code") == "code 4\n"
    assert slurm.read("done") == ""
    assert "Traceback" not in slurm.read("out")


@pytest.mark.parametrize(
    ("registered", "out"), [("", ""), ("import atexit; atexit.register(os.write, 1, b'end')", "end")]
)
def test_a_command_ends_at_once_unless_something_is_to_be_done_at_its_end(registered: str, out: str) -> None:
    """The exit status is the command's either way; `srun --pty` gives the terminal back at its end."""
    text = f"import os, sys\n{registered}\nfrom aver.slurm_cli.output import leave\nleave(77)"
    done = subprocess.run([sys.executable, "-IS", "-c", f"import sys; sys.path[:0] = [{str(SOURCE)!r}]\n{text}"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (77, out, "")
