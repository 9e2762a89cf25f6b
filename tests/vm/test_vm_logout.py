"""A logout: said before it ends jobs, told as such when it did, and survived by who lingers."""

from __future__ import annotations

import pytest
from vm_desk import Vm

from live_home import wait_for

pytestmark = pytest.mark.long


def is_gone(vm: Vm) -> bool:
    """Whether no process of alice is left: her last session's end has been carried out."""
    return vm.ask("pgrep -u alice >/dev/null || echo gone", user="root").strip() == "gone"


def test_without_linger_the_logout_is_named(vm: Vm) -> None:
    """`aver submit` says it once; the job is NODE_FAIL with the words for it, not FAILED 0:15."""
    said = vm.ask("aver submit -- sleep 10000 2>&1; aver submit -- true 2>&1")
    assert said.count("jobs end when you log out") == 1
    assert "`sudo loginctl enable-linger alice` lets them go on" in said  # there is no polkit
    job = int(next(line for line in said.splitlines() if line.isdigit()))
    wait_for(lambda: is_gone(vm), "the end of all of alice's processes", 900)
    vm.ask(f"aver submit --quiet -- true; aver watch {job}", status=None)
    found = vm.document(f"aver jobs {job}")["jobs"][0]
    assert (found["state"], found["detail"]) == ("NODE_FAIL", "ended when its user logged out")


def test_with_linger_jobs_outlive_the_logout(vm: Vm) -> None:
    vm.set_linger(True)
    said = vm.ask("aver submit -- sleep 10000 2>&1")
    assert "log out" not in said
    job = int(said.split()[0])
    sessions = "loginctl list-sessions --no-legend | grep alice | grep -vc manager; true"
    wait_for(lambda: vm.ask(sessions, user="root").strip() == "0", "the end of alice's sessions", 600)
    assert vm.document(f"aver jobs {job}")["jobs"][0]["state"] == "RUNNING"
