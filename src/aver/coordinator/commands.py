"""The folder with Slurm's commands: AVER_HOME/bin. Made when it is missing, made again when it is of another version.

Each command is a few lines that start this Python without its `site` (which takes half of a start) and
call `aver.slurm_cli.NAME`. They are on PATH after `aver env`, in `aver shell`, and inside every local job;
never anywhere else.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aver import __version__
from aver.errors import CantWriteError
from aver.home import Home

COMMANDS = (
    "sbatch", "srun", "salloc", "squeue", "sacct", "scontrol", "scancel", "sinfo", "sstat", "sacctmgr", "sshare",
    "seff",
)  # fmt: skip
LONGEST_INTERPRETER_BYTES = 100  # old kernels read 127 bytes of a `#!` line
_STAMP = ".made-by"


def folder_of(home: Home) -> Path:
    return home.path / "bin"


def install(home: Home) -> Path:
    """The folder, with all commands in it as this version makes them; CantWriteError if it can't be written."""
    folder = folder_of(home)
    stamp = _stamp()
    try:
        if (folder / _STAMP).read_text("utf-8", "surrogateescape") == stamp:
            return folder
    except OSError:
        pass
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        for name in COMMANDS:
            _write(folder / name, text_of(name, sys.executable, _package_folder()), 0o700)
        _write(folder / _STAMP, stamp, 0o600)
    except OSError as error:
        raise CantWriteError(f"can't make Slurm's commands in {folder}: {error.strerror}") from None
    return folder


def text_of(name: str, python: str, package_folder: str) -> str:
    """The text of one command."""
    call = (
        f"import sys\nsys.path.insert(0, {package_folder!r})\n"
        f"from aver.slurm_cli.{name} import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    if len(os.fsencode(python)) <= LONGEST_INTERPRETER_BYTES and not any(one.isspace() for one in python):
        return f"#!{python} -IS\n{call}"
    body = call.replace("\n", "; ").rstrip("; ")
    return f'#!/bin/sh\nexec {shlex.quote(python)} -IS -c {shlex.quote(body)} "$@"\n'


def with_commands(home: Home, environment: Sequence[str]) -> list[str]:
    """The environment with the folder in front of its PATH."""
    folder = os.fspath(folder_of(home))
    pairs = [pair for pair in environment if not pair.startswith("PATH=")]
    path = next((pair[5:] for pair in environment if pair.startswith("PATH=")), os.defpath)
    return [*pairs, f"PATH={in_front(folder, path)}"]


def in_front(folder: str, path: str) -> str:
    """A PATH that begins with the folder, once."""
    return os.pathsep.join([folder, *(one for one in path.split(os.pathsep) if one != folder)])


def _package_folder() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _stamp() -> str:
    return f"aver {__version__} 2\n{sys.executable}\n{_package_folder()}\n"


def _write(path: Path, text: str, mode: int) -> None:
    """Replace the file at once: somebody may be starting it."""
    handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        os.chmod(name, mode)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
