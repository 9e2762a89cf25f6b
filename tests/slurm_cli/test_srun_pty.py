"""srun --pty: a real terminal for the first task. srun --multi-prog and --mpi beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_commands import Slurm
from terminals import Session

from aver.model.states import State
from aver.slurm_cli.srun.task_program import programs
from aver.spec.getopt import BadOption


def at_terminal(slurm: Slurm, *words: str, rows: int = 33, columns: int = 101) -> Session:
    environment = {**slurm.environment, "PS1": "P> ", "TERM": "dumb", "ENV": ""}
    return Session([str(slurm.home / "bin" / words[0]), *words[1:]], slurm.folder, environment, rows, columns)


def test_a_shell_has_a_terminal_of_our_size_and_follows_it(slurm: Slurm) -> None:
    """It is a terminal, it is ours in size, it grows with ours, and srun exits as the shell did."""
    session = at_terminal(slurm, "srun", "--pty", "/bin/sh")
    session.until("P> ")
    session.type("test -t 0 && test -t 1 && stty size\n")
    session.until("33 101")
    session.resize(50, 120)
    session.type("until stty size | grep -q '^50 120'; do sleep 0.05; done; echo grew-$((1 + 1))\n")
    session.until("grew-2")
    session.type("exit 7\n")
    assert session.end() == 7
    assert slurm.job(1).state is State.FAILED


def test_ctrl_c_reaches_the_program_and_not_srun(slurm: Slurm) -> None:
    """The key interrupts what runs in the shell; the shell and srun go on."""
    session = at_terminal(slurm, "srun", "--pty", "/bin/sh")
    session.until("P> ")
    session.type("sh -c 'trap \"echo got-it; exit 0\" INT; echo ready=now; while :; do sleep 0.1; done'\n")
    session.until("\nready=now")
    session.type("\x03")
    session.until("got-it")
    session.type("echo still-$((40 + 2)); exit\n")
    session.until("still-42")
    assert session.end() == 0


def test_the_terminal_is_as_before_when_srun_ends(slurm: Slurm) -> None:
    """Raw while it runs; echo and lines again after, also when the job was cancelled."""
    text = f"{slurm.home}/bin/srun --pty sh -c 'echo begun; sleep 60'; stty -a | grep -q ' icanon' && echo is-back"
    session = Session(["/bin/sh", "-c", text], slurm.folder, slurm.environment, 24, 80)
    session.until("begun")
    assert slurm("scancel", "1").status == 0
    session.until("is-back")
    session.end()


def test_only_the_first_task_has_the_terminal(slurm: Slurm) -> None:
    """The others read nothing and write nowhere, as in Slurm."""
    session = at_terminal(slurm, "srun", "-O", "-n2", "--pty", "sh", "-c", "echo task-$SLURM_PROCID; test -t 0")
    assert session.end() == 1  # of task 1
    assert "task-0" in session.shown
    assert "task-1" not in session.shown


def test_without_a_terminal_pty_is_disregarded_aloud(slurm: Slurm) -> None:
    """Slurm's two lines, and the program runs."""
    said = slurm("srun", "--pty", "echo", "ran")
    assert (said.status, said.out) == (0, "ran\n")
    assert said.err.splitlines() == [
        "srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device",
        "srun: error: Not using a pseudo-terminal, disregarding --pty option",
    ]


def test_a_program_that_is_not_there_exits_with_its_errno(slurm: Slurm) -> None:
    """2 for --pty as without it."""
    session = at_terminal(slurm, "srun", "--pty", "/no/such/program")
    assert session.end() == 2
    assert "execve(): /no/such/program: No such file or directory" in session.shown


def test_each_task_runs_its_own_program(slurm: Slurm) -> None:
    """%t is the task, %o its place in its line, %% a percent sign; quotes hold words together."""
    lines = ("# who runs what", '0 echo "one  %t" %o', "1,3 echo more %t %o 100%%", "* echo rest %t", "")
    (slurm.folder / "programs").write_text("\n".join(lines))
    said = slurm("srun", "-O", "-n4", "-l", "--multi-prog", "programs")
    assert said.status == 0, said
    assert sorted(said.out.splitlines()) == ["0: one  0 0", "1: more 1 0 100%", "2: rest 2", "3: more 3 1 100%"]


def test_the_exit_of_each_program_counts(slurm: Slurm) -> None:
    """The highest code is srun's, and the step is the job's."""
    (slurm.folder / "programs").write_text("0 true\n1 sh -c 'exit 9'\n")
    said = slurm("srun", "-O", "-n2", "--multi-prog", "programs")
    assert said.status == 9
    assert "task 1: Exited with exit code 9" in said.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 echo a\nfoo bar\n", "Invalid task range specification (foo)\nLine 2 of configuration file FILE invalid"),
        ("0-1\n", "Line 1 of configuration file FILE invalid"),
        ("1-0 echo\n", "Invalid task range, 1-0\nLine 1 of configuration file FILE invalid"),
        ("0-5 echo\n", "Invalid task id, 5 >= ntasks\nLine 1 of configuration file FILE invalid"),
        ("0,1 echo\n0 echo\n", "Duplicate record for task 0\nLine 2 of configuration file FILE invalid"),
        ("0 echo\n", "Configuration file FILE invalid, no record for task id 1"),
        ("", "Configuration file FILE invalid, no record for task id 0"),
    ],
)
def test_mistakes_in_the_file_have_slurms_words(text: str, said: str) -> None:
    """As a real srun 22.05.8 said them, with the line."""
    with pytest.raises(BadOption) as caught:
        programs(text, "FILE", 2)
    assert "srun: " + str(caught.value) == "\n".join(f"srun: error: {line}" for line in said.split("\n"))


@given(st.text(alphabet="0123-,*% \"'\\\n#ab", max_size=40), st.integers(1, 4))
def test_any_file_is_read_or_refused(text: str, tasks: int) -> None:
    """A program for each task, or a sentence."""
    try:
        found = programs(text, "FILE", tasks)
    except BadOption:
        return
    assert len(found) == tasks
    assert all(words for words in found)


def test_a_file_that_cant_be_read_is_said(slurm: Slurm) -> None:
    """Before there is a job."""
    said = slurm("srun", "--multi-prog", "nofile")
    assert (said.status, said.err) == (1, "srun: error: Could not open multi_prog config file nofile\n")


def test_mpi_types(slurm: Slurm) -> None:
    """None is there; an unknown one is refused in Slurm's words; ranks that would not find each other are refused."""
    assert slurm("srun", "--mpi=list").out == "MPI plugin types are...\n\tnone\n"
    assert slurm("srun", "--mpi=none", "echo", "ran").out == "ran\n"
    assert slurm("srun", "--mpi=pmi2", "echo", "alone").out == "alone\n"
    unknown = slurm("srun", "--mpi=foo", "true")
    assert unknown.status == 1
    assert unknown.err.splitlines()[-1] == "srun: error: Invalid MPI type 'foo', --mpi=list for acceptable types"
    many = slurm("srun", "--mpi=pmix", "-n2", "true")
    assert many.status == 1
    assert many.err.startswith("srun: error: --mpi=pmix is not supported on one machine")


@pytest.mark.parametrize("option", ["--container=x", "--uid=0", "--no-allocate"])
def test_what_would_change_the_program_is_refused(slurm: Slurm, option: str) -> None:
    """One line and exit 1, and nothing runs."""
    said = slurm("srun", option, "echo", "ran")
    assert (said.status, said.out) == (1, "")
    assert said.err == f"srun: error: {option.partition('=')[0]} is not supported on one machine\n"


def test_several_commands_are_refused(slurm: Slurm) -> None:
    """No command with strange arguments comes of it."""
    job = slurm.submit("-n2", "-O", "-o", "out", "--wrap", "srun true : -n2 true; echo status=$?")
    slurm.until_settled(job)
    assert "not supported on one machine" in slurm.read("out")
    assert "status=1" in slurm.read("out")
    assert sorted(path.name for path in slurm.folder.iterdir()) == ["out"]


def test_a_step_of_a_job_by_its_number(slurm: Slurm) -> None:
    """--jobid: from outside, in a job that runs; refused for others."""
    job = slurm.submit("-o", "/dev/null", "--wrap", "sleep 60")
    slurm.until_state(job, State.RUNNING)
    said = slurm("srun", f"--jobid={job}", "--overlap", "sh", "-c", "echo $SLURM_JOB_ID.$SLURM_STEP_ID")
    assert (said.status, said.out) == (0, f"{job}.0\n")
    assert "Invalid job id specified" in slurm("srun", "--jobid=999", "true").err
    slurm("scancel", str(job))
    slurm.until_settled(job)
    assert "already completing or completed" in slurm("srun", f"--jobid={job}", "true").err
