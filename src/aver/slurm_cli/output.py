"""Standard streams of Slurm's commands: bytes, whatever the locale, in order with what goes to stderr."""

from __future__ import annotations

import os
import sys

from aver.printable import printable
from aver.process_end import leave as leave

LONGEST_LOST = 200


class OutputFailed(Exception):
    """What could not be written to stdout, and why."""

    def __init__(self, why: str, lost: str) -> None:
        super().__init__(why)
        self.why = why
        self.lost = lost


def open_streams() -> None:
    """Put /dev/null where a standard stream is closed: no file or socket of ours may take its place."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115


def show(text: str) -> None:
    """Write it all; raise BrokenPipeError when nobody reads any more, OutputFailed when it can't be written."""
    data = text.encode("utf-8", "surrogateescape" if text.isascii() else "backslashreplace")
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        lost = text.rstrip("\n")
        raise OutputFailed(
            error.strerror or str(error), lost if len(lost) <= LONGEST_LOST and "\n" not in lost else ""
        ) from None


def say(*lines: str) -> None:
    """Write lines to stderr, control characters spelled out; nobody there to read them is not an error.

    All that Slurm's commands write to stderr goes through here, but for a job's own streams.
    """
    for line in lines:
        try:
            os.write(2, printable(line, keep="\n\t").encode("utf-8", "replace") + b"\n")
        except OSError:
            pass


def failed_line(program: str, error: OutputFailed) -> str:
    return f"{program}: error: can't write to stdout: {error.why}" + (f" ({error.lost})" if error.lost else "")
