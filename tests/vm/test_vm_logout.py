"""A logout: said before it ends jobs, told as such when it did, and survived by who lingers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from vm_desk import Vm

from live_home import wait_for

pytestmark = pytest.mark.long

CONF = "/etc/systemd/logind.conf.d"
SESSIONS = "ps -ww -u alice -o cgroup= | grep -c /session-; true"  # processes: logind may keep a session that has none


def is_gone(vm: Vm) -> bool:
    """Whether no process of alice is left: her last session's end has been carried out."""
    return vm.ask("pgrep -u alice >/dev/null || echo gone", user="root").strip() == "gone"


@pytest.fixture(params=["no", "yes"])
def kills(vm: Vm, request: pytest.FixtureRequest) -> Iterator[str]:
    """Whether logind kills what a session leaves behind; Debian's default is no."""
    vm.ask(f"mkdir -p {CONF}; printf '[Login]\nKillUserProcesses={request.param}\n' >{CONF}/kill.conf", user="root")
    vm.ask("systemctl restart systemd-logind", user="root")
    yield request.param
    vm.ask(f"rm {CONF}/kill.conf; systemctl restart systemd-logind", user="root")


def test_without_linger_the_logout_is_named(vm: Vm, kills: str) -> None:
    """`aver submit` says it once; the job is NODE_FAIL with the words for it, not FAILED 0:15."""
    said = vm.ask("aver submit -- sleep 10000 2>&1; aver submit -- true 2>&1")
    assert said.count("jobs end when you log out") == 1
    assert "`sudo loginctl enable-linger alice` lets them go on" in said  # there is no polkit
    job = int(next(line for line in said.splitlines() if line.isdigit()))
    wait_for(lambda: is_gone(vm), "the end of all of alice's processes", 900)
    vm.ask(f"aver submit --quiet -- true; aver watch {job}", status=None)
    found = vm.document(f"aver jobs {job}")["jobs"][0]
    assert (found["state"], found["detail"]) == ("NODE_FAIL", "ended when its user logged out")


def test_with_linger_jobs_outlive_the_logout(vm: Vm, kills: str) -> None:
    """They run below the service manager, which stays, and in no session."""
    vm.set_linger(True)
    said = vm.ask("aver submit -- sleep 10000 2>&1")
    assert "log out" not in said
    job = int(said.split()[0])
    wait_for(lambda: vm.ask(SESSIONS, user="root").strip() == "0", "the end of alice's sessions", 600)
    assert vm.document(f"aver jobs {job}")["jobs"][0]["state"] == "RUNNING"


def test_a_session_that_is_killed_takes_jobs_with_it_in_spite_of_linger(vm: Vm, kills: str) -> None:
    """Where the service manager has no bus the coordinator is in the session: said before and after, or it goes on."""
    vm.set_linger(True)
    wait_for(lambda: "bus" in vm.ask("ls /run/user/1000", user="root", status=None), "alice's bus", 600)
    vm.ask("mv /run/user/1000/bus /run/user/1000/bus.away", user="root")
    try:
        said = vm.ask("aver submit -- sleep 10000 2>&1")
        assert ("logind is set to KillUserProcesses=yes" in said) == (kills == "yes"), said
        job = int(next(line for line in said.splitlines() if line.isdigit()))
        if kills == "yes":
            wait_for(lambda: vm.ask(SESSIONS, user="root").strip() == "0", "the end of alice's sessions", 600)
        vm.ask("aver submit --quiet -- true")
        found = vm.document(f"aver jobs {job}")["jobs"][0]
        if kills == "yes":
            assert (found["state"], found["detail"]) == ("NODE_FAIL", "ended when its user logged out")
        else:
            assert found["state"] == "RUNNING"
    finally:
        vm.ask("mv /run/user/1000/bus.away /run/user/1000/bus; systemctl restart user@1000", user="root", status=None)
