"""`srun PROGRAM` without options: done by a program in C, which becomes Python's srun for everything else."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from slurm_commands import Slurm

import aver.slurm_cli.srun.options as srun_options
from aver.client.slurm_bin import SRUN_IN_PYTHON

SOURCE = Path(srun_options.__file__).with_name("srun.c")


def listed(name: str) -> set[str]:
    """The texts of a list in the C source."""
    found = re.search(rf"{name}\[\] = \{{(.*?)\}};", SOURCE.read_text(), re.DOTALL)
    assert found is not None
    return set(re.findall(r'"([A-Z_]+)"', found[1]))


def output(slurm: Slurm, *lines: str) -> list[str]:
    """What a batch script prints, its srun's words included."""
    script = slurm.script("\n".join(["#!/bin/bash", "exec 2>&1", *lines, ""]))
    slurm.until_settled(slurm.submit("-o", "job.out", script))
    return slurm.read("job.out").splitlines()


@pytest.fixture
def without_python(slurm: Slurm) -> Slurm:
    """Commands whose srun in Python does nothing but say that it was called."""
    (slurm.home / "bin" / SRUN_IN_PYTHON).write_text('#!/bin/sh\necho "python: $*" | sed s/=.*:/=TOKEN:/\n')
    return slurm


def test_variables_that_mean_options_are_pythons() -> None:
    """None of them can be overlooked: the program in C would run the step as if it were not set."""
    assert listed("OPTIONS") | listed("COUNTS") == {*srun_options.ENVIRONMENT, srun_options.EXPORT_VARIABLE}


def test_limits_are_those_of_python() -> None:
    found = re.search(r"LIMITS\[\] = \{(.*?)\};", SOURCE.read_text(), re.DOTALL)
    assert found is not None
    assert set(re.findall(r"RLIMIT_(\w+)", found[1])) == set(srun_options._PROPAGATED)


def test_a_plain_step_needs_no_python(without_python: Slurm) -> None:
    slurm = without_python
    said = output(
        slurm, "srun true; echo $?", "echo in | srun cat", "cd /; srun pwd", "srun env | grep -c '^SLURM_STEP_ID='"
    )
    assert said == ["0", "in", "/", "1"]
    assert slurm("sacct", "-nPo", "jobid,jobname,state", "-j", "1").out.splitlines()[2:] == [
        "1.0|true|COMPLETED", "1.1|cat|COMPLETED", "1.2|pwd|COMPLETED", "1.3|env|COMPLETED",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    ["srun -n1 true", "srun", "srun ''", "srun true : true", "SLURM_NTASKS=2 srun true", "SLURM_WAIT=3 srun true",
     "env -u AVER_KEY srun true", "srun true <&-", "A=$'\\xff' srun true", "AVER_HOME=. srun true",
     "cp /bin/true own; srun own"],
)  # fmt: skip
def test_what_is_not_plain_is_pythons(without_python: Slurm, line: str) -> None:
    """It gets the words as they were typed, and no step was begun."""
    words = line.partition("srun")[2].partition("<")[0].replace("''", "").strip()
    assert output(without_python, line) == [f"python: {words}".rstrip() + (" " if words == "" else "")]
    assert len(without_python("sacct", "-nPo", "jobid", "-j", "1").out.split()) == 2


@pytest.mark.parametrize("program", ["false", "/no/such/program", "sh -c 'kill $$'"])
def test_python_takes_over_a_step_that_fails(without_python: Slurm, program: str) -> None:
    """With the step's token and the open connection: there is something to say."""
    (said,) = output(without_python, f"srun {program}")
    assert re.fullmatch(rf"python: --as-step=TOKEN:[0-9]+ {re.escape(program)}".replace("'", ""), said)


def test_a_failure_is_told_once(slurm: Slurm) -> None:
    assert output(slurm, "srun sh -c 'echo once; exit 3'; echo $?") == [
        "once", f"srun: error: {os.uname().nodename}: task 0: Exited with exit code 3", "3",
    ]  # fmt: skip
    assert slurm("sacct", "-nPo", "jobid,state,exitcode", "-j", "1").out.splitlines()[2:] == ["1.0|FAILED|3:0"]


def test_the_program_gets_the_bytes_that_were_typed(slurm: Slurm) -> None:
    """Quotes, control characters and UTF-8 by the program in C, other bytes by Python: as without srun."""
    (slurm.folder / "show").write_text('printf "%s|" "$1" "$A" | od -An -v -tx1 | tr -d " \\n"; echo\n')
    values = ["""'a"b\\c'""", "'é漢😀'", "$'\\t\\x01x'", "$'\\xff\\xc0\\xafz\\xed\\xa0\\x80'"]
    calls = ("", "srun", "srun -n1")
    said = output(slurm, *[f"A={value} {how} sh show {value}" for value in values for how in calls])
    groups = [set(said[at : at + len(calls)]) for at in range(0, len(said), len(calls))]
    assert [len(group) for group in groups] == [1] * len(values), said
    assert said[0] == (b'a"b\\c|' * 2).hex()


def test_a_coordinator_that_ends_meanwhile(slurm: Slurm) -> None:
    """Python connects to the next one with the same token: the step runs once, and its end is told."""
    (slurm.folder / "stop").write_text(
        "echo once\nkill -9 $(sed -n 's/.*\"pid\": \\([0-9]*\\).*/\\1/p' $AVER_HOME/lock)\nsleep 0.3\n"
    )
    assert output(slurm, "srun sh stop; echo $?") == ["once", "0"]
    assert slurm("sacct", "-nPo", "jobid,state", "-j", "1").out.splitlines()[2:] == ["1.0|COMPLETED"]
