"""The crash campaign, as an ordinary user of the virtual machine: witnesses are in a scope of the service manager."""

from __future__ import annotations

import os

import pytest
from vm_desk import ROOT, Vm

pytestmark = pytest.mark.long
HOURS = os.environ.get("AVER_VM_HOURS") or "0.2"
CAMPAIGN = ("endurance.py", "fault_kinds.py", "known_jobs.py", "ledger_check.py")


def test_no_kill_loses_doubles_or_invents_a_job(vm: Vm) -> None:
    """Coordinators, witnesses and clients are killed while jobs with known outcomes run."""
    vm.set_linger(True)  # who asks over ssh logs out after each question
    vm.ask("rm -rf campaign; mkdir campaign")
    for name in CAMPAIGN:
        vm.put(f"campaign/{name}", (ROOT / "tests" / "endurance" / name).read_text())
    python = vm.ask("dirname $(readlink -f $(command -v aver))").strip() + "/python3"
    print(vm.ask(f"{python} campaign/endurance.py --hours {HOURS} --submissions 6 --kind kill --state campaign"))
