"""The folder with Slurm's commands: AVER_HOME/bin. Made when it is missing, made again when it is of another version.

Each command is a few lines that start this Python without its `site` (which takes half of a start) and
call `aver.slurm_cli.NAME`; `srun` is a program in C, which becomes such lines where they are needed.
They are on PATH after `aver env`, in `aver shell`, and inside every local job.
`put_into` makes others in a folder of the user's choice, which lead to these inside of jobs; never anywhere else.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from aver.client.startup_files import INSIDE, startup_files, without_ours
from aver.durable_files import replace_file
from aver.errors import CantWriteError, UsageError
from aver.home import Home, read_boot_id
from aver.model.threads import without_outer
from aver.version import __version__

COMMANDS = (
    "sbatch", "srun", "salloc", "squeue", "sacct", "scontrol", "scancel", "sinfo", "sstat", "sacctmgr", "sshare",
    "seff",
)  # fmt: skip
LONGEST_INTERPRETER_BYTES = 100  # old kernels read 127 bytes of a `#!` line
LAUNCHER = "-ISXaver-srun"  # by this option a witness knows srun, which is not one of the user's own processes
SRUN_IN_PYTHON = ".srun"  # what srun.c becomes
_STAMP = ".made-by"


def install(home: Home) -> Path:
    """Create or update the folder of commands and return it; raise CantWriteError if it can't be written."""
    folder = home.bin
    stamp = _stamp()
    try:
        if (folder / _STAMP).read_text("utf-8", "surrogateescape") == stamp:
            return folder
    except OSError:
        pass
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        for name, text in texts().items():
            _write(folder / name, text, 0o700)
        (folder / "zsh").mkdir(mode=0o700, exist_ok=True)
        for name, text in startup_files(os.fspath(folder), COMMANDS).items():
            _write(folder / name, text, 0o600)
        _write(folder / _STAMP, stamp, 0o600)
    except OSError as error:
        raise CantWriteError(f"can't make Slurm's commands in {folder}: {error.strerror}") from None
    return folder


def put_into(folder: Path) -> None:
    """Write commands that forward to those of the calling job; raise UsageError rather than replace other files."""
    foreign = [name for name in COMMANDS if os.path.lexists(folder / name) and not is_ours(os.fspath(folder / name))]
    if foreign:
        raise UsageError(f"{folder / foreign[0]} is not made by aver: choose another folder")
    try:
        for name in COMMANDS:
            _write(folder / name, text_of(name, sys.executable, _folders(), leads=True), 0o755)
    except OSError as error:
        raise CantWriteError(f"can't make Slurm's commands in {folder}: {error.strerror}") from None


def is_ours(path: str) -> bool:
    """Whether the file is one that `put_into` or `install` made."""
    try:
        with open(path, "rb") as file:
            return b"from aver.slurm_cli." in file.read(4096)
    except OSError:
        return False


def take_out_of(folder: Path) -> int:
    """Remove the commands that `put_into` wrote; return how many."""
    ours = [folder / name for name in COMMANDS if is_ours(os.fspath(folder / name))]
    try:
        for path in ours:
            path.unlink()
    except OSError as error:
        raise CantWriteError(f"can't remove Slurm's commands from {folder}: {error.strerror}") from None
    return len(ours)


def texts() -> dict[str, str]:
    """The commands of a home by their names, each after those that it becomes."""
    found = {name: text_of(name, sys.executable, _folders()) for name in COMMANDS}
    program = os.path.join(_own_folder(), "aver", "slurm_cli", "srun", "aver-srun")
    if not _can_be_named(program) or not os.access(program, os.X_OK):
        return found
    rest = f"# What is not plain is {SRUN_IN_PYTHON}'s: from aver.slurm_cli.srun import main"
    return {SRUN_IN_PYTHON: found["srun"], **found, "srun": f"#!{program}\n{rest}\n"}


def text_of(name: str, python: str, folders: Sequence[str], leads: bool = False) -> str:
    """The text of one command, or of one that leads to it.

    msgspec imports `typing_extensions` (and with it `inspect`) where it is installed, a fifth of such a command's
    start, and does without where it is not: to a command it is not.
    """
    flags = LAUNCHER if name == "srun" and not leads else "-IS"
    module, words = ("dispatch", f"{name!r}, ") if leads else (name, "")
    call = (
        f"import sys\nsys.path[:0] = [{folders[0]!r}]\nsys.path += {list(folders[1:])!r}\n"
        "sys.modules['typing_extensions'] = None\n"
        f"from aver.slurm_cli.{module} import main\nfrom aver.slurm_cli.output import leave\n"
        f"leave(main({words}sys.argv[1:]))\n"
    )
    if _can_be_named(python):
        return f"#!{python} {flags}\n{call}"
    body = call.replace("\n", "; ").rstrip("; ")
    return f'#!/bin/sh\nexec {shlex.quote(python)} {flags} -c {shlex.quote(body)} "$@"\n'


def _can_be_named(program: str) -> bool:
    """Whether the kernel takes it in a `#!` line."""
    return len(os.fsencode(program)) <= LONGEST_INTERPRETER_BYTES and not any(one.isspace() for one in program)


def with_commands(home: Home, environment: Sequence[str]) -> list[str]:
    """The environment with the folder in front of its PATH, and the user's own BASH_ENV."""
    folder = os.fspath(home.bin)
    found = without_outer(without_ours(dict(pair.partition("=")[::2] for pair in environment), folder))
    found.pop(INSIDE, None)  # of the shell that it was submitted in
    path = found.pop("PATH", os.defpath)
    return [*(f"{name}={value}" for name, value in found.items()), f"PATH={in_front(folder, path)}"]


def in_front(folder: str, path: str) -> str:
    """A PATH that begins with the folder, once."""
    return os.pathsep.join([folder, *(one for one in path.split(os.pathsep) if one != folder)])


def _folders() -> tuple[str, ...]:
    """Where Aver's package is, and msgspec if that is elsewhere: without `site` nobody else says so."""
    own = _own_folder()
    found = importlib.util.find_spec("msgspec")
    if found is None or found.origin is None:
        return (own,)
    return tuple(dict.fromkeys((own, os.path.dirname(os.path.dirname(found.origin)))))


def _own_folder() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _stamp() -> str:
    """What the commands were made by, and since when the machine is up: what is not synced is lost with its power."""
    return f"aver {__version__} 6\n{sys.executable}\n{_folders()!r}\n{read_boot_id()}\n"


def _write(path: Path, text: str, mode: int) -> None:
    """Replace the file atomically: a process may be starting it."""
    replace_file(path, text.encode("utf-8", "surrogateescape"), mode)
