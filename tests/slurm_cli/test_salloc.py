"""salloc: an allocation that is held while its command runs, and given back however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from slurm_commands import DEADLINE_S, Slurm
from terminals import Session

from aver.model.states import State


def begin(slurm: Slurm, *words: str) -> subprocess.Popen[bytes]:
    """salloc in the background."""
    return subprocess.Popen(
        [slurm.home / "bin" / "salloc", *words],
        cwd=slurm.folder,
        env=slurm.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_a_command_runs_in_an_allocation(slurm: Slurm) -> None:
    """Its variables, srun inside, its exit status, the two lines, and the job ends as the command did."""
    text = "echo $SLURM_JOB_ID $SLURM_NTASKS ${SLURM_PROCID:-none}; srun sh -c 'echo rank $SLURM_PROCID'; exit 3"
    said = slurm("salloc", "-n2", "-O", "-t", "5", "sh", "-c", text)
    assert said.status == 3
    assert sorted(said.out.splitlines()) == ["1 2 none", "rank 0", "rank 1"]
    assert said.err == "salloc: Granted job allocation 1\nsalloc: Relinquishing job allocation 1\n"
    assert slurm.job(1).state is State.FAILED
    assert slurm("sacct", "-nP", "-j", "1", "-o", "jobid,jobname,state,exitcode").out.splitlines() == [
        "1|sh|FAILED|3:0", "1.0|sh|COMPLETED|0:0",
    ]  # fmt: skip
    assert "BatchFlag=0" in slurm("scontrol", "show", "job", "1").out


def test_a_signal_that_ends_the_command_is_the_jobs(slurm: Slurm) -> None:
    """128 and its number for who waits; the signal itself in the accounts."""
    said = slurm("salloc", "-Q", "sh", "-c", "kill -SEGV $$")
    assert (said.status, said.err) == (128 + signal.SIGSEGV, "")
    assert slurm("sacct", "-nPX", "-j", "1", "-o", "state,exitcode").out == "FAILED|0:11\n"


def test_a_killed_salloc_gives_its_allocation_back(slurm: Slurm) -> None:
    """kill -9: the job is CANCELLED, and what it held is free again."""
    process = begin(slurm, "sleep", "60")
    slurm_wait(slurm, State.RUNNING)
    process.kill()
    process.wait()
    slurm.until_state(1, State.CANCELLED)
    assert slurm("squeue", "-h").out == ""


def test_it_is_given_back_also_when_the_coordinator_is_gone_too(slurm: Slurm) -> None:
    """Both killed: the holder sees that nobody writes to it any more, and ends."""
    process = begin(slurm, "sleep", "60")
    slurm_wait(slurm, State.RUNNING)
    slurm.kill_coordinator()
    process.kill()
    process.wait()
    assert slurm("squeue", "-h").status == 0  # starts a coordinator
    assert slurm.until_settled(1).state is State.FAILED  # its holder gave up; nobody cancelled it
    assert slurm("squeue", "-h").out == ""


def test_a_coordinator_that_dies_meanwhile_changes_nothing(slurm: Slurm) -> None:
    """The command goes on, its steps run, the exit is its own."""
    (slurm.folder / "go").unlink(missing_ok=True)
    process = begin(slurm, "sh", "-c", "touch ready; until test -e go; do sleep 0.05; done; srun true && exit 4")
    slurm.until_file("ready")
    slurm.kill_coordinator()
    (slurm.folder / "go").touch()
    assert process.wait(DEADLINE_S) == 4
    assert slurm("sacct", "-nPX", "-j", "1", "-o", "state,exitcode").out == "FAILED|4:0\n"


def test_a_time_limit_takes_it_away(slurm: Slurm) -> None:
    """TIMEOUT; with -K the command is ended, and said so."""
    said = slurm("salloc", "-K", "-t", "0:01", "sleep", "60")
    assert said.status == 128 + signal.SIGTERM
    assert "salloc: Job allocation 1 has been revoked.\n" in said.err
    assert slurm.until_settled(1).state is State.TIMEOUT


def test_waiting_for_resources_is_said_and_can_be_limited(slurm: Slurm) -> None:
    """--immediate gives up; TERM while it waits cancels the job; otherwise it is granted in its turn."""
    cpus = os.cpu_count() or 1
    job = slurm.submit("-o", "/dev/null", "-c", str(cpus), "--wrap", "until test -e go; do sleep 0.05; done")
    slurm.until_state(job, State.RUNNING)
    said = slurm("salloc", "-c", str(cpus), "-I1", "true")
    assert said.status == 1
    assert said.err.endswith("salloc: error: Unable to allocate resources: Requested nodes are busy\n")
    process = begin(slurm, "-c", str(cpus), "true")
    wait_for_job(slurm, 3)
    process.terminate()
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert b"Job allocation 3 has been revoked." in err
    assert slurm.until_settled(3).state is State.CANCELLED
    process = begin(slurm, "-c", str(cpus), "true")
    wait_for_job(slurm, 4)
    (slurm.folder / "go").touch()
    assert process.wait(DEADLINE_S) == 0


def test_no_shell_leaves_the_allocation(slurm: Slurm) -> None:
    """srun --jobid uses it, scancel gives it back."""
    assert slurm("salloc", "--no-shell", "-J", "kept").err == "salloc: Granted job allocation 1\n"
    assert slurm.job(1).state is State.RUNNING
    assert slurm("srun", "--jobid=1", "echo", "here").out == "here\n"
    assert slurm("scancel", "1").status == 0
    assert slurm.until_settled(1).state is State.CANCELLED


def test_a_shell_at_a_terminal(slurm: Slurm) -> None:
    """The user's shell, with Ctrl-C for what runs in it, and its exit status."""
    environment = {**slurm.environment, "SHELL": "/bin/sh", "PS1": "P> ", "ENV": "", "TERM": "dumb"}
    session = Session([str(slurm.home / "bin" / "salloc")], slurm.folder, environment, 24, 80)
    session.until("P> ")
    session.type("srun echo step-$((1 + 1)) of $SLURM_JOB_ID\n")
    session.until("step-2 of 1")
    session.type("sleep 60; echo ended=$?\n")
    session.until("sleep 60")
    deadline = time.monotonic() + DEADLINE_S
    while not any("sleep" in name for name in names_in(session.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    session.type("\x03")
    session.until("P> ")
    session.type("exit 5\n")
    assert session.end() == 5
    assert slurm.job(1).name == "interactive"


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        (["--foo"], "salloc: unrecognized option '--foo'\nTry \"salloc --help\" for more information\n", 255),
        (["-t", "foo", "true"], "salloc: error: Invalid --time specification\n", 255),
        (["--container=x", "true"], "salloc: error: --container is not supported by aver\n", 1),
        (["-n", "x", "true"], 'salloc: error: Invalid numeric value "x" for --ntasks.\n', 1),
    ],
)
def test_refusals(slurm: Slurm, words: list[str], said: str, status: int) -> None:
    """Slurm's words and exit statuses, and no job."""
    reply = slurm("salloc", *words)
    assert (reply.status, reply.err) == (status, said)
    assert slurm("squeue", "-h").out == ""


def test_a_command_that_is_not_there(slurm: Slurm) -> None:
    """It is said, and the allocation is given back."""
    said = slurm("salloc", "no-such-command")
    assert said.status == 1
    assert 'Unable to find command "no-such-command"' in said.err
    assert slurm.until_settled(1).state is State.FAILED


def test_variables_are_read(slurm: Slurm) -> None:
    """SALLOC_*, and flags before them."""
    env = {"SALLOC_PARTITION": "long", "SALLOC_TIMELIMIT": "30", "SALLOC_ACCOUNT": "acc"}
    said = slurm("salloc", "-A", "mine", "sh", "-c", "squeue -h -o '%P %l %a'", env=env)
    assert said.out == "long 30:00 mine\n"


def slurm_wait(slurm: Slurm, state: State) -> None:
    wait_for_job(slurm, 1)
    slurm.until_state(1, state)


def wait_for_job(slurm: Slurm, number: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while str(number) not in slurm("squeue", "-h", "-o", "%i").out.split():
        assert time.monotonic() < deadline, f"there is no job {number}"


def names_in(parent: int) -> list[str]:
    """The command lines of all that descends from a process."""
    found: list[str] = []
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            children = [int(word) for word in file.read().split()]
        for child in children:
            with open(f"/proc/{child}/cmdline", "rb") as file:
                found.append(file.read().decode("utf-8", "replace"))
            found += names_in(child)
    except OSError:
        return found
    return found


def test_salloc_refuses_a_begin_after_its_deadline(slurm: Slurm) -> None:
    said = slurm("salloc", "--begin=now+2hour", "--deadline=now+1hour", "true")
    assert (said.status, said.out) == (1, "")
    assert "Incompatible begin and deadline time specification" in said.err
