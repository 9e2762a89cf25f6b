"""How a command ends."""

from __future__ import annotations

import os
import sys

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn


def leave(status: int) -> NoReturn:
    """End the process without taking the interpreter apart, which takes an eighth of a short command's time."""
    if "atexit" not in sys.modules:  # somebody who has still to do something imported it
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            sys.exit(status)  # the interpreter says what became of it
        os._exit(status)
    sys.exit(status)
