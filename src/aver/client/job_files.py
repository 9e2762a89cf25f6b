"""Name and write the files of a job: output, script, environment.

`aver log` finds a job's output by the same functions that the coordinator uses to open it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from aver.client.output_paths import JobFiles as JobFiles
from aver.client.output_paths import Which as Which
from aver.client.output_paths import job_files as job_files
from aver.client.output_paths import output_folder as output_folder
from aver.client.slurm_bin import with_commands
from aver.durable_files import SCRATCH, create_file, naming_failures, rename_file, write_file
from aver.errors import CantWriteError, UsageError
from aver.home import Home
from aver.model.job import FlowSpec, JobSpec, Script, Submission
from aver.model.record import replace
from aver.ownership import make_folder
from aver.spec.prologue import with_prologue
from aver.store.secrets import seal_values

STDIN_COPY = "stdin-"  # how the name of a copy begins that no run has yet


def needs_outputs(specs: Sequence[JobSpec]) -> bool:
    """Whether a job uses the default output folder, which must then be prepared."""
    return any(spec.streams.stdout is None for spec in specs)


def prepare_outputs(submission: Submission, run: int, specs: Sequence[JobSpec]) -> None:
    """Make the default output folder; raise CantWriteError while the submitter can still be told."""
    folder = submission.origin.folder
    if not needs_outputs(specs):
        return
    try:
        if submission.flow.is_single:
            if log_folder := submission.flow.jobs[0].streams.log_folder:
                folder = log_folder
                make_folder(folder)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        else:
            _make_own_folder(os.path.join(folder, output_folder(run)), submission.origin.umask)
    except OSError as error:
        raise CantWriteError(
            f"can't write the job's output in {folder}: {error.strerror}; "
            "choose a place with --output FILE, or submit from another folder"
        ) from None


def in_log_folder(submission: Submission, home: Home, shared: str | None, is_elsewhere: bool) -> Submission:
    """The submission with the output of its command in the home, or in the folder that the cluster's nodes share.

    Where no folder is known that they share, it stays in the folder that the job is submitted from, which they see.
    """
    if is_elsewhere and (not shared or submission.host):
        return submission
    folder = os.path.join(shared, "logs") if is_elsewhere and shared else os.fspath(home.logs)
    (spec,) = submission.flow.jobs
    streams = replace(spec.streams, log_folder=folder)
    return replace(submission, flow=replace(submission.flow, jobs=(replace(spec, streams=streams),)))


def _make_own_folder(path: str, umask: int) -> None:
    """Make a flow's output folder, or reuse it if only we own it; raise CantWriteError otherwise."""
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


def remove_outputs(submission: Submission, run: int) -> None:
    """Remove the run's output folder if it is empty."""
    if not submission.flow.is_single:
        with suppress(OSError):
            os.rmdir(os.path.join(submission.origin.folder, output_folder(run)))


def write_env(home: Home, run: int, env: Sequence[str]) -> None:
    """Write the run's environment with Slurm's commands on its PATH, mode 0600, durable when this returns."""
    data = b"".join(os.fsencode(pair) + b"\0" for pair in with_commands(home, env))
    with naming_failures(home.env(run)):
        create_file(home.env(run), data)


def read_env(home: Home, run: int) -> dict[str, str]:
    """The run's environment by its variables' names; UsageError if it can't be read."""
    try:
        data = home.env(run).read_bytes()
    except FileNotFoundError:
        raise env_removed(run) from None
    except OSError as error:
        raise UsageError(f"can't read the environment of run {run}: {error.strerror}") from None
    return dict(os.fsdecode(pair).partition("=")[::2] for pair in data.split(b"\0") if pair)


def has_env(home: Home, run: int) -> bool:
    return home.env(run).exists()


def check_env(home: Home, run: int) -> None:
    """Raise UsageError if the run's environment was removed, so that it can't run again."""
    if not has_env(home, run):
        raise env_removed(run)


def env_removed(run: int) -> UsageError:
    return UsageError(f"the environment of run {run} was removed, by its age or by aver prune; submit it again")


def change_env(home: Home, run: int, pairs: Sequence[str]) -> None:
    """Set these variables (NAME=VALUE) in the run's environment, or remove them (NAME): all or none, and durable."""
    known = read_env(home, run)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if equals:
            known[name] = value
        else:
            known.pop(name, None)
    with naming_failures(home.env(run)):
        write_file(home.env(run), b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in known.items()))


def write_scripts(home: Home, run: int, flow: FlowSpec, first_spec: int = 0) -> None:
    """Keep the batch scripts, with Slurm's commands on PATH after their shells have read login files."""
    for number, spec in enumerate(flow.jobs, start=first_spec):
        if isinstance(spec.command, Script):
            make_folder(os.fspath(home.scripts(run)))
            text = with_prologue(spec.command.text, os.fspath(home.bin))
            path = script_path(home, run, number)
            with naming_failures(path):
                write_file(path, os.fsencode(text), 0o700)


def script_path(home: Home, run: int, spec_number: int) -> Path:
    return home.scripts(run) / f"script-{spec_number}"


def adopt_stdin(home: Home, run: int, flow: FlowSpec) -> FlowSpec:
    """The flow with the copy of its submitter's stdin under the run's own name: it goes when the run's files go."""
    spec = flow.jobs[0]
    pattern = spec.streams.stdin if flow.is_single else None
    path = Path((pattern or "").replace("%%", "%"))
    if path.parent != home.stdin or not path.name.startswith(STDIN_COPY):
        return flow
    own = home.stdin / str(run)
    try:
        rename_file(path, own)
    except OSError as error:
        raise CantWriteError(f"can't take {path}: {error.strerror}") from None
    streams = replace(spec.streams, stdin=os.fspath(own).replace("%", "%%"))
    return replace(flow, jobs=(replace(spec, streams=streams), *flow.jobs[1:]))


def private_files(home: Home, run: int) -> list[Path]:
    """List what goes with age: environments, scripts, the copy of stdin, memory and CPUs over time."""
    env = [one for pattern in ("env", f"env.*{SCRATCH}") for one in (home.path / "env").glob(f"{run}.*{pattern}")]
    return [*env, *home.scripts(run).glob("*"), *home.stdin.glob(str(run)), *home.use(run).glob("*")]


def remove_private_files(home: Home, run: int, secrets: Sequence[str]) -> None:
    """Remove them from a settled run; of its secrets keyed digests are left, by which they are masked.

    Raise OSError or AverError; what is left then goes the next time.
    """
    seal_values(os.fspath(home.path), run, secrets)
    for path in private_files(home, run):
        path.unlink(missing_ok=True)
    for folder in (home.scripts(run), home.use(run)):
        with suppress(FileNotFoundError):
            folder.rmdir()


def remove_run_files(home: Home, run: int) -> None:
    """Remove all files that the home keeps for the run. Idempotent."""
    for path in (*(home.path / "env").glob(f"{run}.secrets*"), *private_files(home, run)):
        with suppress(OSError):
            path.unlink()
    for folder in (home.scripts(run), home.use(run)):
        with suppress(OSError):
            folder.rmdir()


def numbers_with_files(home: Home) -> set[int]:
    """The numbers that files of the home are named after, of runs and of submissions that were never committed."""
    folders = (home.path / "env", home.path / "scripts", home.stdin, home.path / "use")
    names = {path.name.partition(".")[0] for folder in folders for path in folder.iterdir()}
    return {int(name) for name in names if name.isdigit()}


def remove_unknown_files(home: Home, known: Collection[int]) -> None:
    """Remove files of submissions that were never committed; `known` are the numbers of runs."""
    for number in numbers_with_files(home).difference(known):
        remove_run_files(home, number)


def runs_with_files(home: Home) -> list[int]:
    """List the runs that have files in the home."""
    names = {path.name.partition(".")[0] for path in (home.path / "env").glob("*.env")}
    names |= {path.name for folder in (home.path / "scripts", home.stdin) for path in folder.iterdir()}
    return sorted(int(name) for name in names if name.isdigit())


def remove_stray_copies(home: Home, before: float) -> None:
    """Remove copies of stdin, older than this moment, whose submitter died before the run was accepted."""
    for path in home.stdin.glob(f"{STDIN_COPY}*"):
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
