"""Standard output for Slurm's reading commands: bytes, whatever the locale, in order with what goes to stderr."""

from __future__ import annotations

import os


def show(text: str) -> None:
    """Write it all; raise BrokenPipeError when nobody reads any more."""
    data = text.encode("utf-8", "surrogateescape" if text.isascii() else "backslashreplace")
    while data:
        data = data[os.write(1, data) :]
