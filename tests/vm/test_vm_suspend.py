"""A suspended job stands still on cgroup v2, as an ordinary user: with and without a cgroup of its own, steps too."""

from __future__ import annotations

import pytest
from vm_desk import Vm

pytestmark = pytest.mark.long

ROUNDS = 6
CHAIN = """import os
out = os.open("links", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.write(out, b".")
"""
JOB = """#!/bin/bash
python3 chain.py &
srun --overlap bash -c 'while :; do echo >>step; sleep 0.01; done'
"""
DRIVE = f"""cd "$HOME" && rm -f links step
export PATH="$HOME/.local/state/aver/bin:$PATH"
sizes() {{ stat -c %s links step | tr '\\n' ' '; }}
job=$(aver submit --quiet "$@" job.sh)
until [ -s links ] && [ -s step ]; do sleep 0.2; done
for round in $(seq {ROUNDS}); do
    scontrol suspend $job
    before=$(sizes) state=$(squeue -h -j $job -o %T)
    sleep 1
    [ "$state $before" = "SUSPENDED $(sizes)" ] || echo "round $round: $state, $before, then $(sizes)"
    scontrol resume $job
    before=$(sizes) state=$(squeue -h -j $job -o %T)
    for _ in $(seq 100); do [ "$before" = "$(sizes)" ] || break; sleep 0.2; done
    [ "$state" = RUNNING ] && [ "$before" != "$(sizes)" ] || echo "round $round: $state, and it stands still"
done
scontrol suspend $job
aver cancel $job >/dev/null
aver watch --quiet $job >/dev/null 2>&1
aver jobs $job | tail -1 | grep -o CANCELLED
ps -u $(id -u) -o args= | grep -c '[c]hain.py'
"""


@pytest.mark.parametrize("options", ["", "--mem 200M"])
def test_a_suspended_job_stands_still(vm: Vm, options: str) -> None:
    """What is shown is what is: no process of a chain of forks, nor of a step, outruns its witness."""
    vm.set_linger(True)
    for name, text in (("chain.py", CHAIN), ("job.sh", JOB), ("drive.sh", DRIVE)):
        vm.put(name, text)
    vm.ask("aver run -- true")
    assert vm.ask(f"bash drive.sh {options} 2>&1", status=None) == "CANCELLED\n0\n"
