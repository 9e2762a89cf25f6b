"""The coordinator's log: one line each, to standard error, which is the log file. Never environment values.

A log that can't be written, on a full or broken disk, is no reason to end: the line is written with a later one, or
lost.
"""

from __future__ import annotations

import contextlib
import sys
import time


def log(text: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    with contextlib.suppress(OSError):
        print(f"{stamp} {text}", file=sys.stderr, flush=True)
