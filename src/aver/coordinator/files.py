"""The files of a job: its output, its script, its environment. Names and writing; no decisions.

`aver log` finds a job's output by the same functions that the coordinator uses to open it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from aver.coordinator.commands import with_commands
from aver.coordinator.places import JobFiles as JobFiles
from aver.coordinator.places import Which as Which
from aver.coordinator.places import job_files as job_files
from aver.coordinator.places import output_folder as output_folder
from aver.core.model import FlowSpec, JobSpec, Script, Submission
from aver.errors import CantWriteError, UsageError
from aver.home import Home

NO_FILE = "/dev/null"


def prepare_outputs(submission: Submission, run: int, specs: Sequence[JobSpec]) -> None:
    """Make sure that default outputs can be written, or raise CantWriteError while the submitter still listens."""
    folder = submission.origin.folder
    if all(spec.streams.stdout is not None for spec in specs):
        return
    try:
        if submission.flow.is_single:
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        else:
            _make_own_folder(os.path.join(folder, output_folder(run)), submission.origin.umask)
    except OSError as error:
        raise CantWriteError(
            f"can't write the job's output in {folder}: {error.strerror}; "
            "choose a place with --output FILE, or submit from another folder"
        ) from None


def _make_own_folder(path: str, umask: int) -> None:
    """Make the folder of a flow's outputs, or use it if it is ours alone; CantWriteError if it is not."""
    try:
        os.mkdir(path, 0o755 & ~umask)
        os.chmod(path, 0o755 & ~umask)  # the coordinator's own umask is narrower
    except FileExistsError:
        pass
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise CantWriteError(
            f"can't write the output of the flow's jobs: {path} is there already and is not yours; "
            "submit from another folder"
        )
    if info.st_mode & 0o022:
        raise CantWriteError(f"can't write the output of the flow's jobs: others can write in {path}; chmod go-w it")


def write_env(home: Home, run: int, env: Sequence[str]) -> None:
    """Write the run's environment with Slurm's commands on its PATH, mode 0600, durable when this returns."""
    data = b"".join(os.fsencode(pair) + b"\0" for pair in with_commands(home, env))
    _write(home.env(run), data, 0o600)


def read_env(home: Home, run: int) -> dict[str, str]:
    """The run's environment by its variables' names; UsageError if it can't be read."""
    try:
        data = home.env(run).read_bytes()
    except OSError as error:
        raise UsageError(f"can't read the environment of run {run}: {error.strerror}") from None
    return dict(os.fsdecode(pair).partition("=")[::2] for pair in data.split(b"\0") if pair)


def change_env(home: Home, run: int, pairs: Sequence[str]) -> None:
    """Set these variables (NAME=VALUE) in the run's environment, or remove them (NAME): all or none, and durable."""
    known = read_env(home, run)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if equals:
            known[name] = value
        else:
            known.pop(name, None)
    scratch = home.env(run).with_name(f"{run}.new.env")
    _write(scratch, b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in known.items()), 0o600)
    try:
        os.replace(scratch, home.env(run))
    except OSError as error:
        raise CantWriteError(f"can't write {home.env(run)}: {error.strerror}") from None


def write_scripts(home: Home, run: int, flow: FlowSpec, first_spec: int = 0) -> None:
    """Keep the batch scripts as they were submitted."""
    for number, spec in enumerate(flow.jobs, start=first_spec):
        if isinstance(spec.command, Script):
            home.scripts(run).mkdir(mode=0o700, exist_ok=True)
            _write(script_path(home, run, number), os.fsencode(spec.command.text), 0o700)


def script_path(home: Home, run: int, spec_number: int) -> Path:
    return home.scripts(run) / f"script-{spec_number}"


def remove_run_files(home: Home, run: int) -> None:
    """Remove what the home keeps for the run; missing files are fine."""
    for path in home.env(run).parent.glob(f"{run}.*env"):
        path.unlink(missing_ok=True)
    folder = home.scripts(run)
    if folder.is_dir():
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
        folder.rmdir()


def remove_files_from(home: Home, first: int) -> None:
    """Remove what submissions left that never became durable: numbers from `first` on are nobody's yet."""
    for folder in (home.path / "env", home.path / "scripts"):
        for path in folder.iterdir():
            number = path.name.partition(".")[0]
            if number.isdigit() and int(number) >= first:
                remove_run_files(home, int(number))


def _write(path: Path, data: bytes, mode: int) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
    except OSError as error:
        raise CantWriteError(f"can't write {path}: {error.strerror}") from None
