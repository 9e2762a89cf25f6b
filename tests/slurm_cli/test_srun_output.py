"""srun's -o and -e: one file that all tasks of a step share, and the folders of files that are not there."""

from __future__ import annotations

import re

import pytest
from slurm_commands import Slurm

from aver.model.states import State

ALL_THREE = ["out 0", "out 1", "out 2"]
SAYS = "sh -c 'echo out $SLURM_PROCID'"
SAYS_BOTH = "sh -c 'echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2'"


def run(slurm: Slurm, *lines: str) -> None:
    job = slurm.submit("-n3", "-o", "job.out", slurm.script("\n".join(["#!/bin/bash", *lines, ""])))
    assert slurm.until_settled(job).state is State.COMPLETED, slurm.read("job.out")


def lines_of(slurm: Slurm, name: str) -> list[str]:
    return sorted(slurm.read(name).splitlines())


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (f"srun -o f {SAYS}", "f"),
        (f"SLURM_STDOUTMODE=f srun {SAYS}", "f"),
        (f"srun -o f.%s {SAYS}", "f.0"),
        (f"srun -o f.%x.%5j {SAYS}", "f.job.sh.00001"),
    ],
)
def test_tasks_share_a_file_that_is_truncated_once(slurm: Slurm, call: str, name: str) -> None:
    """No task overwrites another's lines. Slurm: srun opens the file once, and it is the only writer."""
    run(slurm, f"echo before >{name}", call)
    assert lines_of(slurm, name) == ALL_THREE


def test_labelled_lines_of_a_verbose_srun_are_in_its_file(slurm: Slurm) -> None:
    """Also where the step is over before srun has said what it says first."""
    said = slurm("srun", "-v", "-l", "-n2", "-O", "-o", "f.%n", "echo", "hello")
    assert (said.status, said.out) == (0, "")
    assert lines_of(slurm, "f.0") == ["0: hello", "1: hello"]


def test_more_tasks_than_srun_may_open_streams_for(slurm: Slurm) -> None:
    """One line, and no step; as many as the hard limit allows are opened."""
    run(
        slurm,
        "ulimit -Sn 30; srun -O -n40 -l sh -c 'ulimit -Sn' | sort -u -k2 | wc -l >some",
        "ulimit -Hn 30; srun -O -n40 -l true 2>many && exit 1; ls -d /tmp/srun.* 2>/dev/null | wc -l",
    )
    assert slurm.read("some").strip() == "1"
    assert slurm.read("many") == "srun: error: Could not open the streams of 40 tasks: Too many open files\n"


def test_many_lines_of_all_tasks_are_kept(slurm: Slurm) -> None:
    run(slurm, "srun -o f sh -c 'for i in $(seq 500); do echo $SLURM_PROCID $i; done'")
    assert lines_of(slurm, "f") == sorted(f"{task} {line}" for task in range(3) for line in range(1, 501))


def test_errors_go_where_output_goes_unless_they_have_a_file(slurm: Slurm) -> None:
    run(
        slurm,
        f"srun -o both {SAYS_BOTH}",
        f"srun -o same -e same {SAYS_BOTH}",
        f"srun -o only -e err {SAYS_BOTH}",
        f"srun -e err2 {SAYS_BOTH}",
        f"SLURM_STDERRMODE=err3 srun -o o3.%t {SAYS_BOTH}",
        f"srun -o o4 -e err4.%t {SAYS_BOTH}",
    )
    all_six = ["err 0", "err 1", "err 2", *ALL_THREE]
    assert lines_of(slurm, "both") == lines_of(slurm, "same") == all_six
    assert lines_of(slurm, "only") == lines_of(slurm, "job.out") == lines_of(slurm, "o4") == ALL_THREE
    assert lines_of(slurm, "err") == lines_of(slurm, "err2") == lines_of(slurm, "err3") == all_six[:3]
    assert slurm.read("o3.1") == "out 1\n"
    assert slurm.read("err4.2") == "err 2\n"


def test_appending_keeps_what_was_there(slurm: Slurm) -> None:
    run(slurm, "echo before >f", f"srun --open-mode=append -o f {SAYS}", f"SLURM_OPEN_MODE=a srun -o f {SAYS}")
    assert lines_of(slurm, "f") == sorted(["before", *ALL_THREE, *ALL_THREE])


def test_all_tasks_read_a_whole_input_file(slurm: Slurm) -> None:
    run(slurm, "echo in >given", "srun -i given -o f cat")
    assert slurm.read("f") == "in\n" * 3


def test_a_file_that_cant_be_opened_ends_the_step_before_it_begins(slurm: Slurm) -> None:
    """Its name is known only with the step's number: no task runs, and srun says why."""
    job = slurm.submit(
        "-n2", "-o", "job.out", slurm.script("#!/bin/bash\nmkdir f.0\nsrun -o f.%s touch ran\necho status $?\n")
    )
    assert slurm.until_settled(job).state is State.COMPLETED
    assert "srun: error: Could not open stdout file: Is a directory" in slurm.read("job.out")
    assert "status 1" in slurm.read("job.out")
    assert not (slurm.folder / "ran").exists()


def test_a_coordinator_that_comes_back_does_not_truncate_again(slurm: Slurm) -> None:
    job = slurm.submit(
        "-n2",
        slurm.script("#!/bin/bash\nsrun -o f sh -c 'echo a; until [ -e go ]; do sleep 0.05; done; echo b'\n"),
    )
    slurm.until_file("f", "a\na\n")
    slurm.kill_coordinator()
    assert slurm("squeue").status == 0
    (slurm.folder / "go").touch()
    assert slurm.until_settled(job).state is State.COMPLETED
    assert lines_of(slurm, "f") == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (f"srun -n1 -o new/dir/f {SAYS}", "new/dir/f"),
        (f"srun -n1 -e new/dir/f.%t {SAYS_BOTH}", "new/dir/f.0"),
        (f"srun -o new/dir/f.%s {SAYS}", "new/dir/f.0"),
        (f"srun -o new/%t/f {SAYS}", "new/2/f"),
    ],
)
def test_the_folder_of_a_steps_file_is_made(slurm: Slurm, call: str, name: str) -> None:
    """As srun does since 23.02."""
    run(slurm, call)
    assert slurm.read(name)


def test_the_folder_of_a_jobs_output_is_made(slurm: Slurm) -> None:
    """`sbatch -o logs/%j.out` without `logs/`, as Slurm does since 23.02; the folders are 0755, less the umask."""
    job = slurm.submit("-o", "logs/%j/out", "-e", "errors/all/%x", "-J", "x", "--wrap", "echo said; echo bad >&2")
    assert slurm.until_settled(job).state is State.COMPLETED
    assert slurm.read(f"logs/{job}/out") == "said\n"
    assert slurm.read("errors/all/x") == "bad\n"
    assert (slurm.folder / "logs").stat().st_mode & 0o777 == 0o755


def test_a_folder_that_cant_be_made_is_a_launch_failure(slurm: Slurm) -> None:
    (slurm.folder / "file").touch()
    job = slurm.submit("-o", "file/logs/out", "--wrap", "echo said")
    settled = slurm.until_settled(job)
    assert (settled.state, settled.reason) == (State.FAILED, "JobLaunchFailure")
    assert "Not a directory" in slurm.attempts(job)[0].detail


def test_steps_that_run_side_by_side_may_write_to_one_file(slurm: Slurm) -> None:
    """Slurm opens every output to append: what a step has written is not written over by another one."""
    waits = "sh -c 'echo out $0; touch $0.ready; until [ -e go ]; do sleep 0.05; done; echo end $0'"
    ready = "until [ -e 0.ready ] && [ -e 1.ready ]; do sleep 0.05; done"
    run(
        slurm,
        *(f"srun --overlap -n1 --open-mode=append -o f {waits} {number} &" for number in range(2)),
        f"{ready}; touch go; wait",
    )
    assert lines_of(slurm, "f") == ["end 0", "end 1", "out 0", "out 1"]


def test_labels_are_in_the_files(slurm: Slurm) -> None:
    """Also errors, which go where the output goes; and a file of each task has its label too."""
    said = slurm("srun", "-n2", "-l", "-o", "all.%J", "sh", "-c", "echo out; echo err >&2")
    assert (said.status, said.out, said.err) == (0, "", "")
    assert sorted(slurm.read("all.1.0").splitlines()) == ["0: err", "0: out", "1: err", "1: out"]
    assert slurm("srun", "-n2", "-l", "-o", "own.%t", "-e", "none", "sh", "-c", "echo out; echo err >&2").err == ""
    assert (slurm.read("own.0"), slurm.read("own.1")) == ("0: out\n", "1: out\n")


def test_a_labelled_file_that_cant_be_opened_is_said(slurm: Slurm) -> None:
    (slurm.folder / "here").write_text("")
    said = slurm("srun", "-n2", "-l", "-o", "here/%J", "true")
    assert said.status != 0
    assert "srun: error: Could not open stdout file: Not a directory" in said.err


def test_verbose_says_options_job_and_tasks(slurm: Slurm) -> None:
    """-v lists the options that count, then the job, its step and each task's end; SLURM_DEBUG does the same."""
    said = slurm("srun", "-v", "-n2", "-O", "-t1", "--export=ALL,SECRET=x", "true")
    assert said.status == 0
    lines = said.err.splitlines()
    assert "srun: ntasks              : 2" in lines
    assert "srun: overcommit          : set" in lines
    assert "srun: verbose             : 1" in lines
    assert "srun: export              : ALL,SECRET=***" in lines
    assert re.search(r"^srun: jobid \d+: nodes\(1\):`\S+', cpu counts: \d+\(x1\)$", said.err, re.MULTILINE)
    assert re.search(r"^srun: launching StepId=\d+\.0 on host \S+, 2 tasks: \[0-1\]$", said.err, re.MULTILINE)
    assert sum(line.endswith(": Completed") for line in lines) == 2
    assert "srun: verbose             : 1\n" in slurm("srun", "true", env={"SLURM_DEBUG": "1"}).err


def test_several_vs_are_counted(slurm: Slurm) -> None:
    """`-vvvv` is 4 in what srun, sbatch and salloc say."""
    for command, words in (("srun", ["true"]), ("sbatch", ["--wrap", "true"]), ("salloc", ["true"])):
        assert f"{command}: verbose             : 4\n" in slurm(command, "-vvvv", *words).err


def test_zero_of_an_unknown_resource_is_nothing(slurm: Slurm) -> None:
    """`--gres=craynetwork:0` asks for none of it, which every machine has; one of it is refused."""
    assert slurm("srun", "--gres=craynetwork:0", "echo", "ran").out == "ran\n"
    refused = slurm("srun", "--gres=craynetwork:1", "true")
    assert (refused.status, refused.err) == (1, "srun: error: Invalid generic resource (gres) specification\n")


def test_a_program_of_this_folder_needs_no_path(slurm: Slurm) -> None:
    """Slurm's srun looks in PATH first, then in the folder."""
    (slurm.folder / "prog").write_text("#!/bin/sh\necho here; exit 4\n")
    (slurm.folder / "prog").chmod(0o755)
    said = slurm("srun", "prog")
    assert (said.status, said.out) == (4, "here\n")


def test_output_of_one_task_alone(slurm: Slurm) -> None:
    """`-o N` shows what that task writes, and nothing of the others; no file has the name N."""
    said = slurm("srun", "-n4", "-O", "-o", "2", "sh", "-c", "echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2")
    assert (said.status, said.out, said.err) == (0, "out 2\n", "err 2\n")
    assert not (slurm.folder / "2").exists()


def test_input_for_one_task_alone(slurm: Slurm) -> None:
    """`-i N` gives all of stdin to that task; the others read nothing."""
    said = slurm("srun", "-n3", "-O", "-i", "1", "-l", "cat", stdin="a\nb\n")
    assert (said.status, said.out) == (0, "1: a\n1: b\n")
