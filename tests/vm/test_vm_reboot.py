"""A reboot in the middle of a flow: with `aver service` it goes on by itself, else with the next command."""

from __future__ import annotations

from collections import Counter

import pytest
from vm_desk import Vm

from live_home import wait_for

pytestmark = pytest.mark.long

FLOW = """jobs:
  plain: {run: "sleep 10000"}
  trap: {run: "trap 'exit 3' TERM; while :; do sleep 1; done"}
  planned: {run: "echo {n} >>ledger", matrix: {n: [1, 2, 3]}}
  after: {run: "echo after >>ledger", needs: planned}
"""
MEMBERS, CPUS = 100, 2
SHORT = f"""jobs:
  short: {{run: "echo {{n}} >>ledger; sleep 1", matrix: {{n: {list(range(MEMBERS))}}}}}
"""


def test_the_flow_goes_on_after_the_boot(vm: Vm) -> None:
    """What ran is NODE_FAIL, whatever it made of TERM; what was only planned runs, and so do its dependents."""
    vm.ask("rm -f ledger")
    vm.set_linger(True)
    vm.ask("aver service enable")
    vm.put("flow.yaml", FLOW)
    run = int(vm.ask("aver submit --quiet flow.yaml"))
    wait_for(lambda: list(vm.states(run).values()).count("RUNNING") == 2, "two jobs run", 600)
    vm.reboot()
    ledger = "cat ledger 2>/dev/null | sort -u | wc -l"  # no command of Aver's
    wait_for(lambda: vm.ask(ledger).strip() == "4", "every job that was pending has run", 900)
    check_ends(vm, run)


@pytest.mark.parametrize("lingers", [True, False])
def test_without_the_service_the_next_command_goes_on(vm: Vm, lingers: bool) -> None:
    """Nothing runs until somebody types a command; the verdicts are those of who has the service."""
    vm.ask("rm -f ledger")
    vm.set_linger(lingers)
    vm.put("flow.yaml", FLOW)
    with vm.session():  # who does not linger is logged in when the machine goes down
        run = int(vm.ask("aver submit --quiet flow.yaml"))
        wait_for(lambda: list(vm.states(run).values()).count("RUNNING") == 2, "two jobs run", 600)
        vm.reboot()
    assert vm.ask("pgrep -u alice -f aver.coordinator; cat /home/alice/ledger; true", user="root", status=None) == ""
    with vm.session():
        assert "1 run is unfinished, and no coordinator runs" in vm.ask("aver status", status=1)
        vm.ask(f"aver watch {run}", status=None)
        check_ends(vm, run)


def test_no_job_begins_twice(vm: Vm) -> None:
    """Of many short jobs the next lie ready: what a shutdown ends has begun once, and nothing begins while the machine
    goes down."""
    vm.ask("rm -f ledger")
    vm.set_linger(True)
    vm.ask("aver service enable")
    vm.put("flow.yaml", SHORT)
    run = int(vm.ask("aver submit --quiet flow.yaml"))
    wait_for(lambda: int(vm.ask("cat ledger 2>/dev/null | wc -l")) >= 10, "ten jobs have begun", 600)
    vm.reboot()
    vm.settle(run, 1200)
    states = vm.states(run)
    ends = Counter(states.values())
    began = Counter(vm.ask("cat ledger").split())
    print(ends, began.total(), flush=True)
    assert {number: count for number, count in began.items() if count != 1} == {}
    ran = {f"short[n={number}]" for number in began}  # what was ended may not have come to its first command
    assert [name for name, state in states.items() if state == "COMPLETED" and name not in ran] == []
    assert (len(states), ends["COMPLETED"] + ends["NODE_FAIL"]) == (MEMBERS, MEMBERS)
    assert ends["NODE_FAIL"] <= CPUS


def check_ends(vm: Vm, run: int) -> None:
    vm.settle(run, 900)
    states = vm.states(run)
    assert (states.pop("plain"), states.pop("trap")) == ("NODE_FAIL", "NODE_FAIL")
    assert set(states.values()) == {"COMPLETED"}
    assert "shut down" in vm.ask(f"aver show {run}/plain")


def test_the_service_comes_back_after_a_crash(vm: Vm) -> None:
    """A killed coordinator is started again by systemd, and enters the scope that its jobs are in."""
    vm.set_linger(True)
    vm.ask("aver service enable")
    job = int(vm.ask("aver submit --quiet --mem 64M -- sleep 10000"))
    wait_for(lambda: vm.document(f"aver jobs {job}")["jobs"][0]["state"] == "RUNNING", "it runs", 600)
    main = "systemctl --user show -P MainPID aver.service"
    before = vm.ask(main)
    vm.ask(f"kill -9 {before}")
    wait_for(lambda: vm.ask(main) not in ("0\n", before), "another coordinator", 600)
    wait_for(lambda: "/coordinator" in vm.ask(f"cat /proc/$({main})/cgroup"), "the scope's leaf", 600)
    assert vm.document(f"aver jobs {job}")["jobs"][0]["state"] == "RUNNING"
