"""Signals that srun gets: Ctrl-C once and twice, -X, --quit-on-interrupt, and what it hands on to its tasks."""

from __future__ import annotations

import pytest
from slurm_commands import Slurm

TASK = """\
trap 'echo got INT' INT; trap 'echo got USR1' USR1; trap 'echo got USR2' USR2
touch ready
until [ -e go ]; do sleep 0.05; done
echo end
"""


def run(slurm: Slurm, options: str, then: str) -> list[str]:
    """What a batch script prints that does something to a step of its own, which runs until `go` is there."""
    slurm.script(TASK, "task.sh")
    lines = (
        "#!/bin/bash",
        "set -m",  # a background process of a script that is no terminal's ignores INT
        f"srun {options} bash task.sh 2>&1 & P=$!",
        "until [ -e ready ]; do sleep 0.05; done",
        then,
        "wait $P; echo status $?",
    )
    job = slurm.submit("-o", "job.out", slurm.script("\n".join([*lines, ""])))
    slurm.until_settled(job)
    return slurm.read("job.out").splitlines()


def test_one_interrupt_shows_the_tasks(slurm: Slurm) -> None:
    assert run(slurm, "", "kill -INT $P; sleep 0.5; touch go") == [
        "srun: interrupt (one more within 1 sec to abort)",
        "srun: StepId=1.0 task 0: running",
        "end",
        "status 0",
    ]


def test_two_interrupts_kill_them(slurm: Slurm) -> None:
    said = run(slurm, "", "kill -INT $P; sleep 0.3; kill -INT $P")
    assert said[2:4] == ["srun: sending Ctrl-C to StepId=1.0", "srun: forcing job termination"]
    assert "srun: Job step aborted: Waiting up to 32 seconds for job step to finish." in said
    assert said[-1] == "status 137"
    assert slurm("sacct", "-nPo", "state,exitcode", "-j", "1.0").out.startswith("CANCELLED")


def test_without_status_an_interrupt_is_the_tasks_own(slurm: Slurm) -> None:
    said = run(slurm, "-X", "kill -INT $P; sleep 0.5; touch go")
    assert said == ["srun: sending Ctrl-C to StepId=1.0", "got INT", "end", "status 0"]


def test_quit_on_interrupt_kills_at_once(slurm: Slurm) -> None:
    said = run(slurm, "--quit-on-interrupt", "kill -INT $P")
    assert said[:2] == ["srun: sending Ctrl-C to StepId=1.0", "srun: forcing job termination"]
    assert said[-1] == "status 137"


@pytest.mark.parametrize("name", ["USR1", "USR2"])
def test_user_signals_are_for_the_program_of_each_task_alone(slurm: Slurm, name: str) -> None:
    """As with proctrack/cgroup: what the program has started (a sleep, that would die of it) does not get them."""
    slurm.script("touch child; exec sleep 30", "child.sh")
    (slurm.folder / "task.sh").write_text("")
    task = f"trap 'echo got {name}; kill $C' {name}; bash child.sh & C=$!; wait $C; wait $C; echo child $?"
    lines = (
        "#!/bin/bash",
        f'srun bash -c "{task}" 2>&1 & P=$!'.replace("$C", "\\$C").replace("$!;", "\\$!;").replace("$?", "\\$?"),
        "until [ -e child ]; do sleep 0.05; done; sleep 0.2",
        f"kill -{name} $P; wait $P; echo status $?",
    )
    job = slurm.submit("-o", "job.out", slurm.script("\n".join([*lines, ""])))
    slurm.until_settled(job)
    assert slurm.read("job.out").splitlines() == [f"got {name}", "child 143", "status 0"]
