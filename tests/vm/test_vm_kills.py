"""Who killed it: the kernel for a limit of the job or for want of memory, systemd-oomd; and what no limit lets pass."""

from __future__ import annotations

import json

import pytest
from vm_desk import Vm

from live_home import wait_for

pytestmark = pytest.mark.long

EAT = "push @x, 'a' x (16 << 20) while @x * 16 < $ARGV[0]; select undef, undef, undef, $ARGV[1];"
FORKS = "for (1..100) { my $p = fork; $failed++ if !defined $p; sleep 600 if defined $p && !$p } print $failed;"
STEPS = """#!/bin/bash
#SBATCH --mem=120M --ntasks=2
srun perl eat.pl 96 60
exit 0
"""
BOTH = """#!/bin/bash
#SBATCH --mem=120M --ntasks=2
perl eat.pl 80 60 &
srun -n 1 bash -c 'perl eat.pl 80 60'
kill $!
exit 0
"""
OOMD = """import os, signal, sys
for folder, _, _ in os.walk(sys.argv[1]):
    pids = [int(line) for line in open(folder + "/cgroup.procs")]
    if pids:
        os.setxattr(folder, "user.oomd_ooms", b"1")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        os.setxattr(folder, "user.oomd_kill", str(len(pids)).encode())
"""  # as systemd-oomd does it, in this order


@pytest.fixture
def vm(vm: Vm) -> Vm:
    """Who asks over ssh logs out after each question: jobs are to outlive that."""
    vm.set_linger(True)
    return vm


def is_settled(vm: Vm, job: int) -> bool:
    """No, where nobody answers: a machine without memory can't start the command that asks."""
    said = vm.ask(f"aver jobs {job} --json", status=None)
    return bool(said) and bool(json.loads(said)["jobs"][0]["is_settled"])


def end_of(vm: Vm, command: str) -> tuple[str, str, str]:
    """State, detail and warnings of the job that the command submits."""
    job = int(vm.ask(f"aver submit --quiet {command}"))
    wait_for(lambda: is_settled(vm, job), f"the end of {command}", 900)
    found = vm.document(f"aver jobs {job}")["jobs"][0]
    return found["state"], found["detail"], " ".join(found["warnings"])


def test_steps_share_the_limit_of_their_job(vm: Vm) -> None:
    """Two tasks of 96 MB, and script and step of 80 MB each, under 120 MB: the kernel kills. A step's kill is a
    warning of its job, as in Slurm."""
    for name, text in (("eat.pl", EAT), ("steps.sh", STEPS), ("both.sh", BOTH)):
        vm.put(name, text)
    state, _, warnings = end_of(vm, "steps.sh")
    assert (state, "out of memory" in warnings) == ("COMPLETED", True)
    state, _, warnings = end_of(vm, "both.sh")
    assert state == "OUT_OF_MEMORY" or "out of memory" in warnings


def test_swap_does_not_count_as_memory(vm: Vm) -> None:
    """Where the machine has swap, a job's limit holds all the same."""
    vm.put("eat.pl", EAT)
    swap = "fallocate -l 512M /swap && chmod 600 /swap && mkswap -q /swap && swapon /swap"
    vm.ask(f"swapon --show=NAME --noheadings | grep -q /swap || {{ {swap}; }}", user="root")
    assert end_of(vm, "--mem 60M -- perl eat.pl 128 0")[0] == "OUT_OF_MEMORY"
    vm.ask("swapoff /swap; rm /swap", user="root")


def test_the_machine_itself_has_no_memory_left(vm: Vm) -> None:
    """The kernel kills for no limit of the job's: OUT_OF_MEMORY, and it is said."""
    vm.put("eat.pl", EAT)
    for options in ("", "--mem 1900M"):
        state, detail, _ = end_of(vm, f"{options} -- perl eat.pl 4000 0")
        assert (state, "no limit of the job was reached" in detail) == ("OUT_OF_MEMORY", True), detail


@pytest.mark.parametrize("options", ["--mem 100M", ""])
def test_systemd_oomd(vm: Vm, options: str) -> None:
    """It ends all processes in a cgroup and moves no counter; a job without a limit shares its witness's cgroup."""
    vm.put("oomd.py", OOMD)
    job = int(vm.ask(f"aver submit --quiet {options} -- sleep 10000"))
    wait_for(lambda: vm.document(f"aver jobs {job}")["jobs"][0]["state"] == "RUNNING", "it runs", 600)
    pid = int(vm.ask("pgrep -u alice -x sleep").split()[0])
    place = vm.ask(f"cat /proc/{pid}/cgroup").strip().removeprefix("0::")
    assert "aver.slice" in place
    vm.ask(f"python3 /home/alice/oomd.py /sys/fs/cgroup{place}", user="root")
    wait_for(lambda: vm.document(f"aver jobs {job}")["jobs"][0]["is_settled"], "its end", 600)
    found = vm.document(f"aver jobs {job}")["jobs"][0]
    assert (found["state"], "systemd-oomd" in found["detail"]) == ("OUT_OF_MEMORY", True), found


def test_a_fork_bomb_ends_at_max_processes(vm: Vm) -> None:
    vm.put("forks.pl", FORKS)
    vm.ask("aver config set max_processes 50")
    for options in ("", "--mem 100M"):
        state, _, warnings = end_of(vm, f"{options} -- perl forks.pl")
        assert (state, "could not start a process" in warnings) == ("COMPLETED", True)
    vm.ask("rm -r .config/aver")
