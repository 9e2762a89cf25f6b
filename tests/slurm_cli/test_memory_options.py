"""--mem, --mem-per-cpu and --mem-per-gpu exclude each other, and a step has no more memory or GPUs than its job.

All answers are those of a real 22.05.
"""

from __future__ import annotations

import pytest
from slurm_commands import Slurm

from aver.model.states import State

TYPED = "fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
NAMED = "fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive."
SHOWS = "env | grep ^SLURM_MEM_PER"


def memory_of(slurm: Slurm, *words: str, env: dict[str, str]) -> str:
    """The variable for memory of a job of this call."""
    said = slurm("sbatch", "--wait", "-o", "job.out", *words, env=env)
    assert said.status == 0, said.err
    return slurm.read("job.out").strip()


@pytest.mark.parametrize("other", ["--mem-per-cpu=10", "--mem-per-gpu=10"])
@pytest.mark.parametrize(("command", "program"), [("sbatch", "--wrap=true"), ("srun", "true"), ("salloc", "true")])
def test_two_options_for_memory_are_refused(slurm: Slurm, command: str, program: str, other: str) -> None:
    said = slurm(command, "--mem=100", other, program)
    assert (said.out, said.err, said.status) == ("", f"{command}: {TYPED}\n", 1)


def test_a_line_of_the_script_counts_as_typed(slurm: Slurm) -> None:
    script = slurm.script("#!/bin/sh\n#SBATCH --mem=100\ntrue\n")
    said = slurm("sbatch", "--mem-per-cpu=10", script)
    assert (said.err, said.status) == (f"sbatch: {TYPED}\n", 1)


def test_two_variables_for_memory_are_refused(slurm: Slurm) -> None:
    for command, program in (("sbatch", "--wrap=true"), ("salloc", "true")):
        names = {f"{command.upper()}_MEM_PER_NODE": "50", f"{command.upper()}_MEM_PER_CPU": "10"}
        said = slurm(command, program, env=names)
        assert (said.err, said.status) == (f"{command}: {NAMED}\n", 1)


def test_what_is_typed_beats_the_other_variable(slurm: Slurm) -> None:
    """Of two options of one name a variable beats a line of the script; of two names for memory the line counts."""
    script = slurm.script(f"#!/bin/sh\n#SBATCH --mem=100\n{SHOWS}\n")
    assert memory_of(slurm, script, env={"SBATCH_MEM_PER_CPU": "10"}) == "SLURM_MEM_PER_NODE=100"
    assert memory_of(slurm, script, env={"SBATCH_MEM_PER_NODE": "90"}) == "SLURM_MEM_PER_NODE=90"
    of_flag = ("--mem-per-cpu=20", f"--wrap={SHOWS}")
    assert memory_of(slurm, *of_flag, env={"SBATCH_MEM_PER_NODE": "90"}) == "SLURM_MEM_PER_CPU=20"


def output(slurm: Slurm, *options: str, script: str) -> list[str]:
    job = slurm.submit("-o", "job.out", *options, "--wrap", script)
    assert slurm.until_settled(job).state is State.COMPLETED, slurm.read("job.out")
    return slurm.read("job.out").splitlines()


def test_a_step_gets_no_more_memory_than_its_job(slurm: Slurm) -> None:
    script = "srun --mem=100 echo a; srun --mem=101 echo b 2>&1; echo $?; srun --mem-per-cpu=200 echo c 2>&1; echo $?"
    refused = "srun: error: Unable to create step for job 1: Memory required by task is not available"
    assert output(slurm, "--mem=100", script=script) == ["a", refused, "1", refused, "1"]


def test_without_a_limit_of_the_job_a_step_may_have_its_own(slurm: Slurm) -> None:
    assert output(slurm, script="srun --mem=100 echo a") == ["a"]


@pytest.mark.parametrize("option", ["--gres=gpu:1", "-G1", "--gpus-per-node=1", "--gpus-per-task=1"])
def test_a_step_gets_no_gpus_that_its_job_has_not(slurm: Slurm, option: str) -> None:
    """Slurm refuses; a program that ran without its GPU would be the worse answer."""
    refused = "srun: error: Invalid generic resource (gres) specification"
    assert output(slurm, script=f"srun {option} echo a 2>&1; echo $?; srun --gres=none echo b") == [refused, "1", "b"]


def test_a_step_gets_the_gpus_of_its_job(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = slurm.folder / "settings.toml"
    settings.write_text("cpus = 2\ngpus = 2\n")
    monkeypatch.setenv("AVER_CONFIG", str(settings))
    script = "srun -n1 -G2 echo a; srun -n2 --gpus-per-task=1 echo b; srun --gres=gpu:3 echo c 2>&1; echo $?"
    refused = "srun: error: Invalid generic resource (gres) specification"
    assert output(slurm, "-n2", "--gres=gpu:2", script=script) == ["a", "b", "b", refused, "1"]
    assert slurm("srun", "--gres=gpu:1", "echo", "d").out == "d\n"


def test_a_distribution_that_there_is_not_is_refused_inside_a_job(slurm: Slurm) -> None:
    script = "srun -m bogus echo a 2>&1; echo $?; srun -m cyclic echo b"
    assert output(slurm, script=script) == ["srun: error: Invalid --distribution specification", "255", "b"]


def test_the_name_of_a_step_is_the_job_name_of_its_tasks(slurm: Slurm) -> None:
    """srun -J sets SLURM_JOB_NAME in the step, and in the step alone."""
    script = "srun -J mine sh -c 'echo $SLURM_JOB_NAME'; srun sh -c 'echo $SLURM_JOB_NAME'; echo $SLURM_JOB_NAME"
    assert output(slurm, "-J", "job", script=script) == ["mine", "job", "job"]
