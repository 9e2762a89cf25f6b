"""Sentences of a task's verdict that `srun` reads again, to say what Slurm's would.

Pure. Written by the coordinator, from the witness's record; read by `srun` alone, for words, never for an outcome.
"""

from __future__ import annotations

import re

from aver.model.evidence import ActKind, WitnessRecord
from aver.model.signals import signal_name
from aver.model.states import State

WAS_SENT = "was sent"
_KILLS = re.compile(r"the kernel killed (\d+) of its processes for memory")


def detail_of(state: State, record: WitnessRecord) -> str:
    """What the verdict alone does not say: the kernel's kills, or the warning of which it died; else nothing."""
    if state is State.OUT_OF_MEMORY and record.oom_kills:
        return f"the kernel killed {record.oom_kills} of its processes for memory"
    if state is State.FAILED and record.exit is not None and record.exit.signal:
        for act in record.acts:
            if act.kind is ActKind.WARN and act.signal == record.exit.signal:
                return f"{signal_name(act.signal)} {WAS_SENT} as its warning {act.at_s:.1f} s after its start"
    return ""


def oom_kills_in(detail: str) -> int:
    """How many the kernel killed, as `detail_of` wrote it; 0 where nothing of it is there."""
    found = _KILLS.search(detail)
    return int(found[1]) if found else 0
