"""The power of the machine is cut in the middle of hundreds of jobs, again and again on the same disk.

QEMU is ended by SIGKILL: the guest's memory is gone, with every byte that it did not write to its disk. A run is cut
several times, also while it is being taken up again.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest
from vm_desk import ROOT, Vm, lab

from live_home import wait_for

pytestmark = pytest.mark.long

CUTS = int(os.environ.get("AVER_VM_CUTS") or 30)
SEED = int(os.environ.get("AVER_VM_CUTS_SEED") or 15)
MEMBERS = 60  # of each job of the flow
CPUS = 2
LEDGER = "echo $(cat /proc/sys/kernel/random/boot_id) $AVER_JOB $AVER_ATTEMPT {n} >>ledger"
FLOW = f"""jobs:
  good: {{run: "{LEDGER}", matrix: {{n: {list(range(MEMBERS))}}}}}
  bad: {{run: "{LEDGER}; exit 3", matrix: {{n: {list(range(MEMBERS))}}}}}
  limited: {{run: "{LEDGER}; sleep 0.2", mem: 64M, matrix: {{n: {list(range(MEMBERS))}}}}}
  after: {{run: "{LEDGER}", needs: "good[n={{n}}]", matrix: {{n: {list(range(MEMBERS))}}}}}
"""
EXPECTED = {"good": "COMPLETED", "bad": "FAILED", "limited": "COMPLETED", "after": "COMPLETED"}
JOBS = len(EXPECTED) * MEMBERS
CHECK = """import os, sqlite3
path = os.path.expanduser("~/.local/state/aver/aver.db")
print(open("/proc/sys/kernel/random/boot_id").read().strip())
print(sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("PRAGMA integrity_check").fetchone()[0])
"""


@dataclass(slots=True)
class Story:
    """What has been shown of a run, by `aver events --follow` of each boot, which begins with the first event."""

    run: int
    boots: list[str] = field(default_factory=list)
    events: dict[int, str] = field(default_factory=dict)  # line by number
    changed: list[str] = field(default_factory=list)  # lines that are not what was shown before a cut
    shown: dict[int, tuple[str, int]] = field(default_factory=dict)  # final state, and in which boot it was first shown
    doubled: list[str] = field(default_factory=list)  # second verdicts of a job

    def hear(self, line: str) -> None:
        said = json.loads(line)
        before = self.events.setdefault(said["seq"], line)
        if before is not line:
            self.changed += [line] if before != line else []
        elif said["what"] == "job" and said["is_settled"]:
            self.doubled += [line] if said["job"] in self.shown else []
            self.shown[said["job"]] = (said["state"], len(self.boots) - 1)


class Reader:
    """`aver events --follow` in the guest: what it has printed has been shown, whatever comes after."""

    def __init__(self, story: Story) -> None:
        self._story = story
        command = [sys.executable, ROOT / "scripts" / "vm-lab", "ssh", "alice", f"aver events {story.run} --follow"]
        self._program = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            if line.endswith("\n"):
                self._story.hear(line)

    def stop(self) -> None:
        self._program.kill()
        self._program.wait()
        self._thread.join()


def note_boot(vm: Vm, story: Story) -> None:
    """The database is whole before anybody has opened it to write."""
    boot, integrity = vm.ask("python3 check.py").split()
    assert integrity == "ok"
    story.boots.append(boot)


def drive(vm: Vm, story: Story, chance: random.Random) -> bool:
    """Let the run go on for a while, and cut the power; False: it has ended, and nothing was cut."""
    reader = Reader(story)
    try:
        wanted = min(len(story.shown) + chance.randrange(5, 60), JOBS)
        wait_for(lambda: len(story.shown) >= wanted, f"{wanted} verdicts", 1200)
        if wanted == JOBS:
            return False
        time.sleep(chance.random() * 2)
        lab("stop")
    finally:
        reader.stop()
    lab("start", "--keep")
    note_boot(vm, story)
    return True


def check_run(vm: Vm, story: Story) -> str:
    """What was seen of a run that has ended."""
    assert (story.changed, story.doubled) == ([], [])
    jobs = vm.document(f"aver jobs {story.run} --all")["jobs"]
    states = {job["id"]: job["state"] for job in jobs}
    names = {job["id"]: job["name"] for job in jobs}
    assert states == {job: state for job, (state, _) in story.shown.items()}
    lines = [line.split() for line in vm.ask("cat ledger").replace("\0", "").splitlines()]
    whole = [line for line in lines if len(line) == 4 and line[0] in story.boots]  # jobs do not sync it
    ledger = Counter((line[0], line[1]) for line in whole)
    assert [line for line, count in ledger.items() if count > 1] == []  # twice in one boot
    late = [one for one in ledger if story.boots.index(one[0]) > story.shown[int(one[1])][1]]
    assert late == []  # in a boot after that in which the verdict was shown
    unexpected = {names[job]: state for job, state in states.items() if state != EXPECTED[names[job].partition("[")[0]]}
    lost = {name for name, state in unexpected.items() if state == "NODE_FAIL"}
    cuts = len(story.boots) - 1
    assert len(lost) <= CPUS * cuts, lost
    skipped = {f"after{name.removeprefix('good')}" for name in lost if name.startswith("good")}
    assert unexpected == {**dict.fromkeys(lost, "NODE_FAIL"), **dict.fromkeys(skipped, "SKIPPED")}
    again = len(ledger) - len({job for _, job in ledger})
    kept = sum(boot < cuts for _, boot in story.shown.values())
    return f"{cuts} cuts, {kept} verdicts shown before one, {len(lost)} jobs lost while they ran, {again} begun again"


def test_what_was_shown_is_kept_and_nothing_runs_twice(vm: Vm) -> None:
    """Only what ran at a cut is NODE_FAIL, of which there are no more than CPUs; all else ends as it should."""
    vm.set_linger(True)
    vm.put("flow.yaml", FLOW)
    vm.put("check.py", CHECK)
    chance = random.Random(SEED)
    cuts = 0
    while cuts < CUTS:
        story = Story(int(vm.ask("rm -f ledger; aver submit --quiet flow.yaml")))
        note_boot(vm, story)
        while drive(vm, story, chance):
            cuts += 1
            print(f"cut {cuts}: {len(story.shown)} verdicts shown before it", flush=True)
        print(f"run {story.run}: {check_run(vm, story)}", flush=True)
