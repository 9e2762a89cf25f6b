"""A file of the command line as a flow: a flow file or a batch script, by extension and content.

With `spec.files` the only module of `spec` that touches the file system.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from aver.errors import UsageError
from aver.model.job import FlowSpec
from aver.model.record import replace
from aver.printable import printable
from aver.spec import document
from aver.spec.files import FolderFiles
from aver.spec.flags import Overrides, flag_of
from aver.spec.flow.file import looks_like_flow, parse_flow
from aver.spec.flow.params import ParamValues
from aver.spec.mistakes import shown
from aver.spec.sbatch.lines import LARGEST_BYTES as LARGEST_SCRIPT_BYTES

STDIN = "-"
FLOW_SUFFIXES = (".yaml", ".yml", ".json")


def load(
    path: str,
    overrides: Overrides = Overrides(),
    *,
    args: Sequence[str] = (),
    now: float | None = None,
    folder: str | None = None,
    params: ParamValues = ParamValues(),
) -> FlowSpec:
    """The flow or script at `path`, with flags and arguments; raise UsageError or SpecError.

    `folder` is where its jobs start (default: the current one), and where its lists of files are looked up.
    The path `-` is stdin.
    """
    moment = time.time() if now is None else now
    data = _read_stdin() if path == STDIN else read_bytes(path, args)
    suffix = Path(path).suffix.lower()
    is_json = suffix == ".json"
    is_script = _is_script(data, suffix)
    if path == STDIN:
        path, is_json, is_script = "stdin", _is_json(data), data.startswith(b"#!")
    if is_script:
        if params.given:
            raise UsageError(f"--set is for a flow: {shown(printable(path))} is a batch script")
        from aver.spec.sbatch.script import parse_script  # options of sbatch are not for flows

        return parse_script(data, path, overrides, args=args, now=moment)
    _refuse_flags(path, overrides, args)
    files = FolderFiles(folder)
    flow = parse_flow(data, path, now=moment, name=Path(path).stem, is_json=is_json, files=files, params=params)
    return replace(flow, name=overrides.name) if overrides.name else flow


def _is_script(data: bytes, suffix: str) -> bool:
    if suffix in FLOW_SUFFIXES:
        return data.startswith(b"#!") and b"\njobs" not in data
    return not looks_like_flow(data)


def _read_stdin() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("there is nothing on stdin: give a file, or  aver run - < flow.yaml")
    return sys.stdin.buffer.read(max(document.MAX_BYTES, LARGEST_SCRIPT_BYTES) + 1)


def _is_json(data: bytes) -> bool:
    if not data.lstrip().startswith(b"{"):
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def read_bytes(path: str, args: Sequence[str] = ()) -> bytes:
    """The file's bytes, up to more than any format allows; raise UsageError if it can't be read."""
    said = shown(printable(path))
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{said} is not a file: give a flow (.yaml, .json) or a batch script")
            return file.read(max(document.MAX_BYTES, LARGEST_SCRIPT_BYTES) + 1)
    except FileNotFoundError:
        raise UsageError(_missing(path, args)) from None
    except IsADirectoryError:
        raise UsageError(f"{said} is a folder: give a flow (.yaml, .json) or a batch script in it") from None
    except PermissionError:
        raise UsageError(f"{said} can't be read: permission denied; look at its mode with  ls -l") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{said} can't be read: {why}") from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not hang us


def _missing(path: str, args: Sequence[str]) -> str:
    name = printable(path)
    if "/" not in path and shutil.which(path):
        command = " ".join([name, *map(printable, args)])
        return f"`{name}` is a program, not a flow or a script: put the command after --:  aver run -- {command}"
    if " " in path and shutil.which(path.split()[0]):
        return f"{shown(name)} is not a file: a command comes after -- and without quotes:  aver run -- {name}"
    return f"{shown(name)} does not exist: give a flow (.yaml, .json) or a batch script, or a command after --"


def _refuse_flags(path: str, overrides: Overrides, args: Sequence[str]) -> None:
    if args:
        hint = "; options come before it" if args[0].startswith("-") else ""
        raise UsageError(f"a flow takes no arguments: {printable(path)} was given {shown(printable(args[0]))}{hint}")
    given = [flag_of(field) for field in overrides.given() if field != "name"]
    if given:
        raise UsageError(
            f"{given[0]} is for a script or a command: in a flow write it in a job or in defaults ({printable(path)})"
        )
