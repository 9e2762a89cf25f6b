"""The others: xargs -P, GNU parallel with --joblog, and a loop of posix_spawn and wait.

As a program, `contenders.py COUNT SLOTS COMMAND...` is that loop.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path


def command(other: str, slots: int, program: list[str], count: int, scratch: Path) -> list[str]:
    """How `other` runs `program` for each line of its input, `slots` at a time."""
    match other:
        case "xargs":
            return ["xargs", f"-P{slots}", "-I{}", *program]
        case "parallel":
            joblog = str(scratch / f"joblog-{time.monotonic_ns()}")
            return ["parallel", "--will-cite", f"-j{slots}", "--joblog", joblog, "-N0", *program]
        case "map":
            return ["parallel", "--will-cite", f"-j{slots}", "--tmpdir", str(scratch), *program, "{}"]
        case "posix_spawn":
            return [sys.executable, "-I", "-S", __file__, str(count), str(slots), *program]
        case _:
            raise ValueError(other)


def start(other: str, slots: int, program: list[str], count: int, scratch: Path) -> subprocess.Popen[bytes]:
    """Start it with `count` lines of input; its output goes nowhere."""
    lines = scratch / f"lines-{count}"
    lines.write_text("".join(f"{at}\n" for at in range(count)))
    with lines.open() as source:
        return subprocess.Popen(
            command(other, slots, program, count, scratch),
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PARALLEL_HOME": str(scratch)},
            start_new_session=True,
        )


def seconds(other: str, slots: int, program: list[str], count: int, scratch: Path) -> float:
    """How long it takes for all, from its start to its end."""
    began = time.perf_counter()
    status = start(other, slots, program, count, scratch).wait()
    took = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"{other} ended with status {status}")
    return took


def available() -> list[str]:
    return [other for other in ("xargs", "parallel", "posix_spawn") if other == "posix_spawn" or shutil.which(other)]


def spawn_loop(count: int, slots: int, program: list[str]) -> None:
    path = shutil.which(program[0]) or program[0]
    running = 0
    for _ in range(count):
        if running == slots:
            os.wait()
            running -= 1
        os.posix_spawn(path, program, os.environ)
        running += 1
    for _ in range(running):
        os.wait()


if __name__ == "__main__":
    spawn_loop(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
