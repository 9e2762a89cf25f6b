"""The coordinator's log: one line each, to standard error, which is the log file. Never environment values."""

from __future__ import annotations

import sys
import time


def log(text: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    print(f"{stamp} {text}", file=sys.stderr, flush=True)
