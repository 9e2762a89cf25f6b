"""The power of the machine is cut in the middle of hundreds of jobs, again and again on the same disk.

QEMU is ended by SIGKILL: the guest's memory is gone, with every byte that it did not write to its disk.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest
from vm_desk import ROOT, Vm, lab

from live_home import wait_for

pytestmark = pytest.mark.long

ROUNDS = int(os.environ.get("AVER_VM_CUTS") or 30)
SEED = int(os.environ.get("AVER_VM_CUTS_SEED") or 15)
MEMBERS = 100  # of each job of the flow
CPUS = 2
LEDGER = "echo $(cat /proc/sys/kernel/random/boot_id) $AVER_JOB $AVER_ATTEMPT {n} >>ledger"
FLOW = f"""jobs:
  good: {{run: "{LEDGER}", matrix: {{n: {list(range(MEMBERS))}}}}}
  bad: {{run: "{LEDGER}; exit 3", matrix: {{n: {list(range(MEMBERS))}}}}}
  limited: {{run: "{LEDGER}; sleep 0.2", mem: 64M, matrix: {{n: {list(range(MEMBERS))}}}}}
  after: {{run: "{LEDGER}", needs: "good[n={{n}}]", matrix: {{n: {list(range(MEMBERS))}}}}}
"""
EXPECTED = {"good": "COMPLETED", "bad": "FAILED", "limited": "COMPLETED", "after": "COMPLETED"}
CHECK = """import os, sqlite3
path = os.path.expanduser("~/.local/state/aver/aver.db")
print(sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("PRAGMA integrity_check").fetchone()[0])
"""


@dataclass(slots=True)
class Reader:
    """`aver events --follow` in the guest: what it has printed has been shown, whatever comes after."""

    run: int
    shown: dict[int, str] = field(default_factory=dict)  # final state by job

    def start(self) -> None:
        command = [sys.executable, ROOT / "scripts" / "vm-lab", "ssh", "alice", f"aver events {self.run} --follow"]
        self._program = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            if not line.endswith("\n"):
                return
            said = json.loads(line)
            if said["what"] == "job" and said["is_settled"]:
                self.shown[said["job"]] = said["state"]

    def stop(self) -> None:
        self._program.kill()
        self._program.wait()
        self._thread.join()


def cut_power(vm: Vm, chance: random.Random) -> str:
    """One round; what was seen of it."""
    run = int(vm.ask("rm -f ledger; aver submit --quiet flow.yaml"))
    reader = Reader(run)
    reader.start()
    wanted = chance.randrange(5, 3 * MEMBERS)
    wait_for(lambda: len(reader.shown) >= wanted, f"{wanted} verdicts", 1200)
    lab("stop")
    reader.stop()
    lab("start", "--keep")
    assert vm.ask("python3 check.py") == "ok\n"
    vm.ask(f"aver watch {run}", status=None)
    jobs = vm.document(f"aver jobs {run} --all")["jobs"]
    states = {job["id"]: job["state"] for job in jobs}
    names = {job["id"]: job["name"] for job in jobs}
    assert {job: states[job] for job in reader.shown} == reader.shown
    ran = Counter(vm.ask("cat ledger").splitlines())
    assert [line for line, count in ran.items() if count > 1] == []
    unexpected = {names[job]: state for job, state in states.items() if state != EXPECTED[names[job].partition("[")[0]]}
    lost = {name for name, state in unexpected.items() if state == "NODE_FAIL"}
    assert len(lost) <= CPUS, lost
    skipped = {f"after{name.removeprefix('good')}" for name in lost if name.startswith("good")}
    assert unexpected == {**dict.fromkeys(lost, "NODE_FAIL"), **dict.fromkeys(skipped, "SKIPPED")}
    return f"{len(reader.shown)} verdicts shown, {len(lost)} jobs lost while they ran"


def test_what_was_shown_is_kept_and_nothing_runs_twice(vm: Vm) -> None:
    """Only what ran at the cut is NODE_FAIL, of which there are no more than CPUs; all else ends as it should."""
    vm.set_linger(True)
    vm.put("flow.yaml", FLOW)
    vm.put("check.py", CHECK)
    chance = random.Random(SEED)
    for number in range(ROUNDS):
        print(f"cut {number + 1}: {cut_power(vm, chance)}", flush=True)
