"""The files of a job: its output, its script, its environment. Names and writing; no decisions.

`aver log` finds a job's output by the same functions that the coordinator uses to open it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aver.coordinator.commands import with_commands
from aver.core.model import FlowSpec, JobSpec, Script, Submission
from aver.core.record import dataclass
from aver.core.template import fill
from aver.errors import CantWriteError
from aver.home import Home
from aver.spec.arrays import is_array
from aver.spec.patterns import Facts, expand_pattern

LONGEST_FILE_NAME_BYTES = 200
NO_FILE = "/dev/null"


@dataclass(frozen=True, slots=True)
class JobFiles:
    """Absolute paths. stderr None: the same as stdout."""

    folder: str
    stdin: str | None
    stdout: str
    stderr: str | None
    append: bool


@dataclass(frozen=True, slots=True)
class Which:
    """Which attempt's files."""

    run: int
    job: int
    name: str
    attempt: int
    values: tuple[tuple[str, str], ...] = ()
    member: int | None = None  # its number in its matrix


def job_files(submission: Submission, spec: JobSpec, which: Which, is_single: bool) -> JobFiles:
    """Where this attempt reads and writes."""
    origin = submission.origin
    name, values, member = which.name, dict(which.values), which.member
    if values and is_array(spec):  # its index is no value to fill in, but %a
        name, values, member = spec.name, {}, int(which.values[0][1])
    folder = os.path.join(origin.folder, fill(spec.folder, values)) if spec.folder else origin.folder
    facts = Facts(which.job, which.run, name, origin.user, origin.host, member)
    streams = spec.streams

    def place(pattern: str) -> str:
        return os.path.normpath(os.path.join(folder, expand_pattern(fill(pattern, values), facts)))

    append = streams.append
    if streams.stdout is None:
        stdout = os.path.join(origin.folder, _default_output(which, is_single))
    else:
        stdout = place(streams.stdout)
        append = append or (which.attempt > 1 and not spec.facts)  # Slurm truncates when it begins again
    stderr = place(streams.stderr) if streams.stderr is not None else None
    stdin = place(streams.stdin) if streams.stdin is not None else None
    return JobFiles(folder, stdin, stdout, stderr, append)


def _default_output(which: Which, is_single: bool) -> str:
    again = f".{which.attempt}" if which.attempt > 1 else ""
    if is_single:
        return f"aver-{which.job}{again}.out"
    name = which.name.replace("/", "_")
    if len(os.fsencode(name)) > LONGEST_FILE_NAME_BYTES:
        name = str(which.job)
    return os.path.join(output_folder(which.run), f"{name}{again}.out")


def output_folder(run: int) -> str:
    """The folder of a flow's default outputs, below the folder that it was submitted from."""
    return f"aver-{run}"


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
            os.makedirs(os.path.join(folder, output_folder(run)), mode=0o777 & ~submission.origin.umask, exist_ok=True)
    except OSError as error:
        raise CantWriteError(
            f"can't write the job's output in {folder}: {error.strerror}; "
            "choose a place with --output FILE, or submit from another folder"
        ) from None


def write_env(home: Home, run: int, env: Sequence[str]) -> None:
    """Write the run's environment with Slurm's commands on its PATH, mode 0600, durable when this returns."""
    data = b"".join(os.fsencode(pair) + b"\0" for pair in with_commands(home, env))
    _write(home.env(run), data, 0o600)


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
