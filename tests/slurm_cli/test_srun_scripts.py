"""Scripts that srun runs around its program and its tasks, --bcast, -E, --test-only, and what tasks are told."""

from __future__ import annotations

import os

import pytest
from slurm_commands import Slurm


def script(slurm: Slurm, name: str, *lines: str) -> str:
    path = slurm.folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return os.fspath(path)


def test_a_task_prolog_changes_the_environment_and_prints(slurm: Slurm) -> None:
    prolog = script(slurm, "before", "echo export SEEN=$SLURM_PROCID", "echo unset GONE", "echo print '  from prolog'")
    said = slurm(
        "srun", "-n2", f"--task-prolog={prolog}", "sh", "-c", "echo $SLURM_PROCID has $SEEN$GONE", env={"GONE": "no"}
    )
    assert said.status == 0, said
    assert sorted(said.out.splitlines()) == ["0 has 0", "1 has 1", "from prolog", "from prolog"]


def test_a_task_prolog_that_fails_ends_the_task(slurm: Slurm) -> None:
    said = slurm("srun", f"--task-prolog={script(slurm, 'before', 'exit 3')}", "echo", "ran")
    assert (said.status, said.out) == (3, "")
    assert "slurmstepd: error: --task-prolog failed status=3" in said.err


@pytest.mark.parametrize(
    ("program", "status", "shown"), [("exit 5", 5, "5:0"), ("kill -USR2 $$", 140, "0:12"), ("true", 0, "0:0")]
)
def test_a_task_epilog_runs_after_the_program_whose_end_stays_its_own(
    slurm: Slurm, program: str, status: int, shown: str
) -> None:
    epilog = script(slurm, "after", f"echo $SLURM_PROCID $SLURM_SCRIPT_CONTEXT > {slurm.folder}/epilog")
    said = slurm("srun", f"--task-epilog={epilog}", "sh", "-c", program)
    assert said.status == status, said
    assert slurm.read("epilog") == "0 epilog_task\n"
    assert slurm("sacct", "-nPo", "exitcode", "-j", "1.0").out.strip() == shown


def test_a_signal_reaches_the_program_of_a_task_with_an_epilog(slurm: Slurm) -> None:
    epilog = script(slurm, "after", f"touch {slurm.folder}/epilog")
    loop = "trap 'echo caught; exit 4' USR1; touch ready; while :; do sleep 0.05; done"
    lines = (
        "#!/bin/bash",
        f'srun --task-epilog={epilog} sh -c "{loop}" &',
        "until [ -e ready ]; do sleep 0.05; done",
        "kill -USR1 $!; wait $!; echo status $?",
    )
    job = slurm.submit("-o", "job.out", slurm.script("\n".join([*lines, ""])))
    slurm.until_settled(job)
    assert slurm.read("job.out").splitlines()[0] == "caught"
    assert "status 4" in slurm.read("job.out")
    assert (slurm.folder / "epilog").exists()


def test_prolog_and_epilog_of_srun_run_where_it_was_called(slurm: Slurm) -> None:
    around = script(slurm, "around", "echo $SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID $*")
    said = slurm("srun", f"--prolog={around}", f"--epilog={around}", "echo", "hi")
    assert said.status == 0, said
    assert said.out.splitlines() == ["prolog_srun 1 echo hi", "hi", "epilog_srun 1 echo hi"]


def test_a_prolog_that_fails_leaves_no_step(slurm: Slurm) -> None:
    said = slurm("srun", f"--prolog={script(slurm, 'around', 'exit 7')}", "echo", "hi")
    assert (said.status, said.out) == (1, "")
    assert said.err == "srun: error: srun prolog failed rc = 7. Aborting step.\n"
    assert slurm("sacct", "-nPo", "jobid,state", "-j", "1").out.splitlines() == ["1|FAILED"]


def test_bcast_runs_the_copy(slurm: Slurm) -> None:
    said = slurm("srun", "--bcast=copy", "/bin/sh", "-c", "readlink /proc/$$/exe")
    assert said.out.strip() == os.fspath(slurm.folder / "copy")
    assert slurm("srun", "--bcast=missing/copy", "/bin/sh", "-c", "true").status == 1


def test_preserve_env_keeps_the_callers_counts(slurm: Slurm) -> None:
    env = {"SLURM_NTASKS": "5", "SLURM_NNODES": "7"}
    shows = ("sh", "-c", "echo $SLURM_NTASKS $SLURM_NNODES")
    assert slurm.shell(f"SLURM_NTASKS=5 {slurm.home}/bin/srun -n1 {shows[0]} -c 'echo $SLURM_NTASKS'").out == "1\n"
    inside = slurm.script('#!/bin/bash\nSLURM_NTASKS=5 SLURM_NNODES=7 srun -E -n1 sh -c "$1"\n')
    job = slurm.submit("-o", "job.out", inside, shows[2])
    slurm.until_settled(job)
    assert slurm.read("job.out") == f"{env['SLURM_NTASKS']} {env['SLURM_NNODES']}\n"


def test_test_only_submits_nothing(slurm: Slurm) -> None:
    said = slurm("srun", "--test-only", "-n1", "-p", "debug", "touch", "ran")
    assert said.status == 0
    assert said.err.startswith("srun: Job 1 to start at ")
    assert said.err.endswith(" in partition debug\n")
    assert not (slurm.folder / "ran").exists()
    assert slurm("squeue", "-h").out == ""
    refused = slurm("srun", "--test-only", "-c", "9999", "true")
    assert (refused.status, refused.err) == (
        1, "allocation failure: Requested node configuration is not available\n"
    )  # fmt: skip


def test_what_a_task_is_told(slurm: Slurm) -> None:
    names = "SLURM_TASK_PID SLURM_NPROCS SLURM_OVERCOMMIT SLURM_LAUNCH_NODE_IPADDR SLURM_UMASK SLURM_DISTRIBUTION"
    text = "echo $$; " + "; ".join(f"echo ${name}" for name in names.split())
    said = slurm.shell(f"umask 027; {slurm.home}/bin/srun -O -m cyclic sh -c '{text}'")
    pid, *told = said.out.splitlines()
    assert told == [pid, "1", "1", "127.0.0.1", "0027", "cyclic"]


def test_a_batch_script_knows_its_pid(slurm: Slurm) -> None:
    slurm("sbatch", "--wait", "-o", "job.out", "--wrap", "echo $SLURM_TASK_PID $$")
    told, own = slurm.read("job.out").split()
    assert told == own


def test_a_batch_script_knows_when_it_began_and_has_to_end(slurm: Slurm) -> None:
    """As since Slurm 23.02; without a limit there is no end."""
    text = "echo $SLURM_JOB_START_TIME $SLURM_JOB_END_TIME $(date +%s)"
    slurm("sbatch", "--wait", "-t", "10", "-o", "limited.out", "--wrap", text)
    began, ends, now = map(int, slurm.read("limited.out").split())
    assert began <= now < began + 600 == ends
    slurm("sbatch", "--wait", "-o", "free.out", "--wrap", text)
    assert len(slurm.read("free.out").split()) == 2


def test_a_program_that_srun_becomes_has_the_default_actions_of_signals(slurm: Slurm) -> None:
    """Python ignores SIGPIPE; a program that inherits this writes on for ever."""
    (slurm.folder / "programs").write_text("0 sh -c 'grep SigIgn /proc/self/status'\n")
    ignored = int(slurm("srun", "--multi-prog", "programs").out.split()[1], 16)
    assert not ignored & (1 << 12)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("*", "block"),
        ("*:*", "block:cyclic"),
        ("*:block:*", "block:block:block"),
        ("cyclic:*,pack", "cyclic:cyclic,pack"),
        ("plane=3", "plane 3"),
    ],
)
def test_tasks_know_their_distribution(slurm: Slurm, asked: str, told: str) -> None:
    """Defaults stand in place of `*`, and the size of a plane has its own variable, as with Slurm."""
    said = slurm("srun", "-m", asked, "sh", "-c", "echo $SLURM_DISTRIBUTION $SLURM_DIST_PLANESIZE")
    assert said.out == f"{told}\n"


def test_a_task_epilog_that_does_not_end_is_killed(slurm: Slurm) -> None:
    """slurmstepd gives it five seconds; the task has its own exit status all the same."""
    script = slurm.folder / "epilog"
    script.write_text("#!/bin/sh\nsleep 300\n")
    script.chmod(0o755)
    said = slurm("srun", f"--task-epilog={script}", "sh", "-c", "exit 3")
    assert said.status == 3
    assert "slurmstepd: error: TaskEpilog failed status=9\n" in said.err


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("--mincpus=99999", "CPU count per node"),
        ("--tmp=999999999", "Temporary disk specification"),
        ("--mem=999999999", "Memory specification"),
    ],
)
def test_what_no_node_has_is_refused_in_slurms_words(slurm: Slurm, option: str, what: str) -> None:
    """srun alone refuses as sbatch does, and runs nothing."""
    said = slurm("srun", option, "echo", "ran")
    why = "Unable to allocate resources: Requested node configuration is not available"
    assert (said.status, said.out) == (1, "")
    assert said.err == f"srun: error: {what} can not be satisfied\nsrun: error: {why}\n"


def test_more_nodes_than_one_are_refused(slurm: Slurm) -> None:
    """Alone, srun can't get them; --test-only says the same."""
    why = "Requested node configuration is not available"
    assert slurm("srun", "-N2", "true").err == f"srun: error: Unable to allocate resources: {why}\n"
    said = slurm("srun", "--test-only", "-N2", "true")
    assert (said.status, said.err) == (1, f"allocation failure: {why}\n")


def test_memory_by_cpu_is_shown_of_srun_alone(slurm: Slurm) -> None:
    said = slurm("srun", "--mem-per-cpu=100", "sh", "-c", f"{slurm.home}/bin/scontrol show job $SLURM_JOB_ID")
    assert " MinMemoryCPU=100M " in said.out
