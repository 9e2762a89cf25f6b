"""An ordinary user of a machine with systemd and cgroup v2, nothing configured: the kernel enforces `mem`."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable

import pytest
from vm_desk import Vm

from live_home import wait_for

TRIES = int(os.environ.get("AVER_VM_TRIES") or 200)
HOG = "my $data = ''; vec($data, ($ARGV[0] << 20) - 1, 8) = 1; select undef, undef, undef, $ARGV[1];"
GROW = "for (1..100) { my $more = ''; vec($more, (1 << 20) - 1, 8) = 1; push @data, \\$more }"
SHARED = "import mmap; data = mmap.mmap(-1, 100 << 20); data.write(bytes(1 << 20) * 100)"
CASES = {  # name: (mem, what it runs, how it ends)
    "burst": ("60M", "exec perl hog.pl 100 0", "OUT_OF_MEMORY"),
    "growth": ("60M", "exec perl grow.pl", "OUT_OF_MEMORY"),
    "child": ("60M", "perl hog.pl 100 0; exit 0", "OUT_OF_MEMORY"),
    "several": ("100M", "for n in 1 2 3 4; do perl hog.pl 30 10 & done; wait; exit 0", "OUT_OF_MEMORY"),
    "shared": ("60M", "exec python3 -IS shared.py", "OUT_OF_MEMORY"),
    "page-cache": ("20M", "dd if=/dev/zero bs=1M count=40 of=c$TRY; cat c$TRY >/dev/null; rm c$TRY", "COMPLETED"),
    "enough": ("100M", "exec perl hog.pl 50 0", "COMPLETED"),
}


def matrix(names: Iterable[str], tries: int) -> str:
    jobs = []
    for name in names:
        mem, run, _ = CASES[name]
        members = f"matrix: {{try: {list(range(tries))}}}, env: {{TRY: '{{try}}'}}"
        jobs.append(f"  {name}: {{cpus: 0.25, mem: {mem}, {members}, shell: bash, run: {run!r}}}")
    return "jobs:\n" + "\n".join(jobs) + "\n"


def test_doctor_finds_the_limit_and_leaves_no_unit(vm: Vm) -> None:
    """The user's service manager gives a scope; what was made to find that out is gone afterwards."""
    checks = {one["name"]: one for one in vm.document("aver doctor")["checks"]}
    assert checks["memory limit"]["status"] == "ok", checks["memory limit"]
    assert "service manager" in checks["memory limit"]["fact"]
    assert "scope" not in vm.ask("systemctl --user list-units --no-legend 'aver-*.scope'")


@pytest.mark.long
def test_following_doctors_advice_literally_works(vm: Vm) -> None:
    """Without a login there is no service manager: doctor names that and one command, which gives the limit."""
    vm.ask("loginctl terminate-user alice", user="root", status=None)
    wait_for(lambda: not vm.ask("pgrep -u alice; true", user="root"), "the end of alice's processes", 600)
    doctor = "cd /tmp; runuser -u alice -- env HOME=/home/alice aver doctor --json"
    before = limit_check(vm.ask(doctor, user="root"))
    assert (before["status"], "no service manager" in before["fact"]) == ("limited", True)
    command = before["advice"].split("`")[1]
    vm.ask(command.removeprefix("sudo "), user="root")
    wait_for(lambda: limit_check(vm.ask(doctor, user="root"))["status"] == "ok", "a limit by the kernel", 600)


def limit_check(text: str) -> dict[str, str]:
    return next(one for one in json.loads(text)["checks"] if one["name"] == "memory limit")


def try_cases(vm: Vm, names: Iterable[str], tries: int) -> None:
    """Each case so often, in one run of one coordinator, which leaves nothing behind when it is stopped."""
    vm.set_linger(True)  # who asks over ssh logs out after each question
    for name, text in (("hog.pl", HOG), ("grow.pl", GROW), ("shared.py", SHARED), ("flow.yaml", matrix(names, tries))):
        vm.put(name, text)
    run = int(vm.ask("aver submit --quiet flow.yaml"))
    vm.settle(run, 7000)
    ends = Counter((name.partition("[")[0], state) for name, state in vm.states(run).items())
    print(ends, flush=True)
    assert ends == {(name, CASES[name][2]): tries for name in names}
    vm.ask("aver stop")
    wait_for(lambda: not vm.left_behind(), "nothing is left behind", 120)


def test_out_of_memory_exactly_when_the_limit_is_exceeded(vm: Vm) -> None:
    """Bursts, slow growth, a child under exit 0, several processes, shared memory; not the page cache."""
    try_cases(vm, CASES, 1)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_every_try_of_a_case_ends_as_it_should(vm: Vm, name: str) -> None:
    try_cases(vm, [name], TRIES)
