"""The srun inside of a job that `srun` alone has made: the job is only this step, and ends as it."""

from __future__ import annotations

import os
import resource

from aver.fast_start import TYPE_CHECKING, c_signal

if TYPE_CHECKING:
    from typing import Any


def end_as_the_step(code: int, ends: list[dict[str, Any]]) -> int:
    """End by the signal that the step ended by, with no core of our own; return its exit code if it had one.

    Tasks that were ended because another one failed do not count, as in the step's exit.
    """
    raws = [one["raw"] for one in ends if not one["because"]]
    if not any(raws) and None not in raws:
        raws = [one["raw"] for one in ends]
    if None in raws or not raws:
        return code
    worst: int = max(raws, key=lambda raw: 128 + (raw & 0x7F) if raw & 0x7F else raw >> 8)
    number = worst & 0x7F
    if not number:
        return worst >> 8
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (c_signal.SIGKILL, c_signal.SIGSTOP):
        c_signal.signal(number, c_signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return code
