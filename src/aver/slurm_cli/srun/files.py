"""The files that srun's -i, -o and -e name: whether they can be opened, before a step is asked for.

A name with a pattern is left to the witness, which knows the task. Nothing is waited for: fifos and devices are
not opened here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from aver.slurm_cli.srun.options import Options
from aver.spec.getopt import BadOption

LONGEST_PROGRAMS_BYTES = 1 << 24


def check(spec: Mapping[str, Any]) -> None:
    """BadOption with Slurm's sentence for the first that can't be opened."""
    for field in ("stdin", "stdout", "stderr"):
        name = spec.get(field)
        if name is None or "%" in name:
            continue
        try:
            _try(os.path.join(spec["folder"], name), field == "stdin", spec["umask"])
        except OSError as error:
            raise BadOption(f"error: Could not open {field} file: {error.strerror}") from None


def _try(path: str, is_input: bool, umask: int) -> None:
    flags = os.O_RDONLY if is_input else os.O_WRONLY
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        if is_input:
            raise
        flags |= os.O_CREAT
        make_folder(path)
    else:
        if stat.S_ISDIR(kind) and is_input:
            return
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            return
    os.close(os.open(path, flags | os.O_CLOEXEC, 0o666 & ~umask))


def make_folder(path: str) -> None:
    """The folders above a file that is to be written, as srun makes them; what fails is told by the file's opening."""
    try:
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    except OSError:
        pass


def open_shared(spec: Mapping[str, Any], files: Mapping[str, str]) -> tuple[int, ...]:
    """Open the files that all tasks of the step write to; the descriptors for its standard streams.

    Each file is opened and truncated once, so that no task writes over what another one has written.
    """
    opened: dict[str, int] = {}
    mode = os.O_APPEND if spec.get("append") else os.O_APPEND | os.O_TRUNC
    for field, path in files.items():
        if path in opened:
            continue
        make_folder(path)
        try:
            opened[path] = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o666)
        except OSError as error:
            raise BadOption(f"error: Could not open {field} file: {error.strerror}") from None
    out = opened.get(files.get("stdout", ""), 1)
    is_apart = "stderr" in spec or "stdout" not in files
    return 0, out, opened.get(files.get("stderr", ""), 2) if is_apart else out


def check_task(name: str, value: str, tasks: int) -> None:
    """A number that is a task's would mean the stream of that task alone: refused, and no file of that name made."""
    if value.isascii() and value.isdigit() and len(value) < 9 and int(value) < tasks:
        raise BadOption(f"error: --{name}={value} (the stream of one task) is not served on one machine")


def read_programs(options: Options) -> None:
    """Check the file of --multi-prog for all tasks before there is a step; BadOption has Slurm's sentences."""
    from aver.slurm_cli.srun.multi_prog import programs
    from aver.slurm_cli.srun.options import number

    path = options.command[0]
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(LONGEST_PROGRAMS_BYTES)
    except OSError:
        raise BadOption(f"error: Could not open multi_prog config file {path}") from None
    tasks = number(options.get("ntasks"), "ntasks") or number(options.get("ntasks-per-node"), "ntasks-per-node") or 1
    programs(text, path, tasks)
