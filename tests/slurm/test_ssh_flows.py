"""Flows on a cluster behind ssh: the same verdicts, the files there and back, the log, the cancel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fault_desk import OK, ONE, SEVEN, until
from ssh_desk import SshHome

from aver.model.exit import ExitStatus
from aver.model.job import Matrix, Need, Needs, Request
from aver.model.states import State
from live_home import wait_for
from sshd import HOST


def test_every_outcome_is_as_without_ssh(ssh_home: SshHome) -> None:
    """Codes above 127, signals, the members of an array, a step's code, a skipped dependent: all are seen."""
    job = ssh_home.ssh_job
    run = ssh_home.submit(
        job("good", "exit 0"),
        job("one", "exit 1"),
        job("high", "exit 137"),
        job("higher", "exit 200"),
        job("killed", "kill -TERM $$"),
        job("many", "exit {n}", matrix=Matrix((("n", ("0", "7")),))),
        job("steps", "srun bash -c 'exit 7'; exit 0"),
        job("after", "exit 0", needs=Needs((Need("good"),))),
        job("never", "exit 0", needs=Needs((Need("one"),))),
        sync=(".",),
    )
    ssh_home.settle([run])
    ssh_home.check(run, {
        "good": (State.COMPLETED, OK), "one": (State.FAILED, ONE), "high": (State.FAILED, ExitStatus(137)),
        "higher": (State.FAILED, ExitStatus(200)), "killed": (State.FAILED, ExitStatus(0, 15)),
        "many[n=0]": (State.COMPLETED, OK), "many[n=7]": (State.FAILED, SEVEN), "steps": (State.COMPLETED, OK),
        "after": (State.COMPLETED, OK), "never": (State.SKIPPED, None),
    })  # fmt: skip
    with ssh_home.reader() as reader:
        steps = next(one for one in reader.jobs(run=run) if one.name == "steps")
        printed = (ssh_home.synced / f"aver-{run}" / "steps.out").read_text()
        assert steps.derived == 7 << 8, printed
        sources = {one.source for one in reader.jobs(run=run) if one.name in ("good", "high")}
    assert sources
    assert all("witness" in one for one in sources)


def test_the_time_limit_is_the_cluster_s(ssh_home: SshHome) -> None:
    """TIMEOUT is Slurm's word."""
    run = ssh_home.submit(ssh_home.ssh_job("time", "sleep 1000", request=Request(time_s=3)), sync=(".",))
    ssh_home.settle([run], 150)
    ssh_home.check(run, {"time": (State.TIMEOUT, ExitStatus(0, 15))})


def test_memory_is_the_cluster_s(ssh_home: SshHome) -> None:
    """Out of memory is the kernel's word on the node."""
    if "task/cgroup" not in Path(ssh_home.lab.environment["SLURM_CONF"]).read_text():
        pytest.skip("the lab has no cgroups here: nobody enforces memory")
    eat = "python3 -c 'x = bytearray(400 << 20)'"
    run = ssh_home.submit(ssh_home.ssh_job("memory", eat, request=Request(mem_bytes=100 << 20)), sync=(".",))
    ssh_home.settle([run], 90)
    assert ssh_home.states(run) == {"memory": "OUT_OF_MEMORY"}
    assert ssh_home.verdict_text(run, "memory").startswith("witness: ")


def test_folders_go_there_and_come_back_before_the_verdict(ssh_home: SshHome) -> None:
    """What a job needs is there, what it wrote is here when it is settled; what is excluded stays; edits are kept."""
    project = ssh_home.synced
    (project / "in put.txt").write_text("from here\n")
    (project / "big.ckpt").write_text("stays\n")
    gate = ssh_home.folder / "gate"
    here = ssh_home.ssh_job("here", "cat 'out put.txt' > copied", needs=Needs((Need("there"),)), engine="local")
    there = ssh_home.ssh_job("there", f"{until(gate)} cat 'in put.txt' > 'out put.txt'; ls > listed; pwd")
    run = ssh_home.submit(there, here, sync=(".",), sync_exclude=("*.ckpt",))
    ssh_home.wait_state(run, "there", State.RUNNING)
    (project / "in put.txt").write_text("edited meanwhile\n")
    gate.touch()
    ssh_home.settle([run])
    assert ssh_home.states(run) == {"there": "COMPLETED", "here": "COMPLETED"}
    assert (project / "out put.txt").read_text() == (project / "copied").read_text() == "from here\n"
    assert (project / "in put.txt").read_text() == "edited meanwhile\n"
    assert "big.ckpt" not in (project / "listed").read_text().split()
    assert (project / f"aver-{run}" / "there.out").read_text().strip() == str(ssh_home.there(project))


def test_the_environment_is_the_host_s_and_the_flow_s(ssh_home: SshHome) -> None:
    """This machine's PATH and HOME mean nothing there; values of the flow arrive, whatever is in them."""
    (ssh_home.sshd.home / ".bash_profile").write_text(". ~/.profile\nexport SITE=there\n")
    odd = "it's $HOME\nand `more`"
    text = 'printf "%s|%s|%s|%s" "$SITE" "$HOME" "$ODD" "${SLURM_JOB_NAME}" > said'
    run = ssh_home.submit(ssh_home.ssh_job("say", text, env=(("ODD", odd),)), sync=(".",), env={"LAPTOP": "yes"})
    ssh_home.settle([run])
    assert (ssh_home.synced / "said").read_text() == f"there|{ssh_home.sshd.home}|{odd}|say"


def test_the_log_is_followed_on_the_host(ssh_home: SshHome) -> None:
    """`aver log -f` shows lines while the job runs there, goes on after a cut, and ends whole."""
    gate = ssh_home.folder / "gate"
    run = ssh_home.submit(ssh_home.ssh_job("talk", f"echo one; {until(gate)} echo two"), sync=(".",))
    ssh_home.wait_state(run, "talk", State.RUNNING)
    wait_for(lambda: "one" in ssh_home.aver("log", str(run)).stdout, "aver log reads it there")
    words = [sys.executable, "-m", "aver", "log", str(run), "-f"]
    following = subprocess.Popen(words, cwd=ssh_home.synced, stdout=subprocess.PIPE, text=True)
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    ssh_home.sshd.cut()
    gate.touch()
    assert following.communicate(timeout=60)[0] == "two\n"
    ssh_home.settle([run])
    assert ssh_home.aver("log", str(run)).stdout == "one\ntwo\n"


def test_a_cancel_goes_through(ssh_home: SshHome) -> None:
    """A running job on the host is cancelled, and its files come back all the same."""
    run = ssh_home.submit(ssh_home.ssh_job("long", "echo begun > begun; sleep 1000"), sync=(".",))
    ssh_home.wait_state(run, "long", State.RUNNING)
    wait_for((ssh_home.there(ssh_home.synced) / "begun").exists, "it has begun")
    assert ssh_home.aver("cancel", str(run)).returncode == 0
    ssh_home.settle([run])
    assert ssh_home.states(run) == {"long": "CANCELLED"}
    assert (ssh_home.synced / "begun").exists()


def test_a_folder_that_the_host_does_not_have_is_refused_in_words(ssh_home: SshHome) -> None:
    """Slurm would run it in another folder: it is FAILED before, and the sentence says what to write."""
    run = ssh_home.submit(ssh_home.ssh_job("lost", "true", folder="/no/such/folder"))
    ssh_home.settle([run])
    assert ssh_home.states(run) == {"lost": "FAILED"}
    text = ssh_home.verdict_text(run, "lost")
    assert "there is no folder /no/such/folder" in text
    assert "sync" in text


def test_the_witness_is_brought_once_and_checked(ssh_home: SshHome) -> None:
    """One that was changed there is replaced; one that is whole is not sent again."""
    run = ssh_home.submit(ssh_home.ssh_job("first", "exit 0"), sync=(".",))
    ssh_home.settle([run])
    base = next(ssh_home.sshd.home.glob(".local/state/aver/slurm-*"))
    witness = next((base / "bin").iterdir())
    first = witness.stat().st_mtime_ns
    ssh_home.kill_coordinator()
    run = ssh_home.submit(ssh_home.ssh_job("second", "exit 0"), sync=(".",))
    ssh_home.settle([run])
    assert witness.stat().st_mtime_ns == first
    ssh_home.kill_coordinator()
    witness.write_bytes(b"#!/bin/sh\nexit 0\n")
    run = ssh_home.submit(ssh_home.ssh_job("third", "exit 7"), sync=(".",))
    ssh_home.settle([run])
    assert ssh_home.states(run) == {"third": "FAILED"}
    assert "witness" in ssh_home.verdict_text(run, "third")
    wait_for(lambda: not list((base / "records").glob("[!.]*")), "records that are not needed are removed")


def test_doctor_and_connect_say_what_is_there(ssh_home: SshHome) -> None:
    """The site behind the host, or why it can't be reached."""
    told = ssh_home.aver("doctor", "--engine", "slurm")
    assert told.returncode == 0, told.stdout + told.stderr
    assert HOST in told.stdout
    assert "slurm-" in told.stdout
    connected = ssh_home.aver("connect", HOST)
    assert connected.returncode == 0, connected.stderr
    assert "sbatch is" in connected.stderr
    assert ssh_home.aver("connect", "--close", HOST).returncode == 0
    ssh_home.sshd.stop()
    away = ssh_home.aver("doctor", "--engine", "slurm")
    assert away.returncode == 1
    assert f"aver connect {HOST}" in away.stdout
    assert ssh_home.aver("connect", HOST).returncode == 69
