"""What srun puts before a task's program where the task must first find itself: `--pty` and `--multi-prog`.

Runs in the task's own process and becomes its program. What can't be started ends it with the errno, as Slurm has it.
"""

from __future__ import annotations

import os
import sys

AS_TASK = "--as-task"
PTY, MULTI_PROG = "pty", "multi-prog"
CHANGED_STATUS = 1


def main(words: list[str]) -> int:
    """`pty PROGRAM…`, or `multi-prog FILE`. Does not return where the program can be started."""
    kind, *rest = words
    rank = int(os.environ.get("SLURM_PROCID", "0"))
    if kind == PTY:
        _take_terminal(rank)
        command = rest
    else:
        command = _program(rest[0], rank)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"slurmstepd: error: execve(): {command[0]}: {os.strerror(error.errno or 0)}\n")
        return error.errno or CHANGED_STATUS


def _take_terminal(rank: int) -> None:
    """The pseudo-terminal is the first task's; the others have nothing to read and nowhere to write."""
    import fcntl
    import termios

    if rank:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        return
    try:
        os.setsid()
    except PermissionError:
        pass  # it leads its session already
    try:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    except OSError:
        pass  # a terminal all the same, without signals from its keys


def _program(path: str, rank: int) -> list[str]:
    from aver.slurm_cli.srun.multi_prog import programs
    from aver.spec.getopt import BadOption

    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return programs(file.read(), path, int(os.environ["SLURM_NTASKS"]))[rank]
    except (OSError, KeyError, BadOption) as error:
        sys.stderr.write(f"slurmstepd: error: the configuration file {path} changed: {error}\n")
        sys.exit(CHANGED_STATUS)
