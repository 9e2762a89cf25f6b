"""Paths of a job's stdin, stdout and stderr: the coordinator opens them, commands show them.

Imports little: `scontrol show job` is called in loops. Flows' texts with `{name}` load what fills them.
"""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.spec.patterns import Facts, expand_pattern, safe_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aver.model.job import JobSpec, Submission

LONGEST_FILE_NAME_BYTES = 200
NAME_CHARS = 180  # of a name behind which the number of its job comes
SBATCH_OUTPUT, SBATCH_ARRAY_OUTPUT = "slurm-%j.out", "slurm-%A_%a.out"  # of sbatch without --output


class JobFiles:
    """Absolute paths. stderr None: the same as stdout.

    `own_parts`: how many of the last parts of stdout Aver chose: 0 is a name of the user's, 1 the file, 2 its folder
    as well. There nothing is used that another user may have put there.
    """

    __slots__ = ("append", "folder", "own_parts", "stderr", "stdin", "stdout")

    def __init__(
        self, folder: str, stdin: str | None, stdout: str, stderr: str | None, append: bool, own_parts: int = 0
    ) -> None:
        self.folder = folder
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.append = append
        self.own_parts = own_parts


class Which:
    """Which attempt's files. `member` is the job's number in its matrix."""

    __slots__ = ("attempt", "job", "member", "name", "run", "values")

    def __init__(
        self,
        run: int,
        job: int,
        name: str,
        attempt: int,
        values: tuple[tuple[str, str], ...] = (),
        member: int | None = None,
    ) -> None:
        self.run = run
        self.job = job
        self.name = name
        self.attempt = attempt
        self.values = values
        self.member = member


def job_files(submission: Submission, spec: JobSpec, which: Which, is_single: bool) -> JobFiles:
    """Return the paths of this attempt's stdin, stdout and stderr."""
    origin = submission.origin
    name, values, member = which.name, dict(which.values), which.member
    if (index := array_index(spec, which.values)) is not None:  # it is no value to fill in, but %a
        name, values, member = spec.name, {}, index
    folder = os.path.join(origin.folder, _filled(spec.folder, values)) if spec.folder else origin.folder
    is_slurms = (
        spec.slurm is not None and spec.slurm.command is not None
    )  # sbatch's, which truncates when it begins again
    if not (is_slurms or is_single) and safe_part(name) != name:  # the same name as a file's may be another job's
        name = f"{safe_part(name)[:NAME_CHARS]}#{which.job}"
    facts = Facts(which.job, which.run, name, origin.user, origin.host, member)
    streams = spec.streams

    def place(pattern: str) -> str:
        return os.path.normpath(os.path.join(folder, expand_pattern(_filled(pattern, values), facts)))

    append = streams.append
    if streams.stdout is None:
        stdout = os.path.join(streams.log_folder or origin.folder, _default_output(which, is_single))
        own_parts = 1 if is_single else 2
    else:
        stdout = place(streams.stdout)
        own_parts = 1 if is_slurms and streams.stdout in (SBATCH_OUTPUT, SBATCH_ARRAY_OUTPUT) else 0
        append = append or (which.attempt > 1 and not is_slurms)
    stderr = place(streams.stderr) if streams.stderr is not None else None
    stdin = place(streams.stdin) if streams.stdin is not None else None
    return JobFiles(folder, stdin, stdout, stderr, append, own_parts)


def synced_folders(names: Sequence[str], folder: str) -> tuple[str, ...]:
    """The folders of `sync`, absolute; relative ones are in the folder that the flow was submitted from."""
    return tuple(os.path.normpath(os.path.join(folder, os.path.expanduser(name))) for name in names)


def array_index(spec: JobSpec, values: tuple[tuple[str, str], ...]) -> int | None:
    """The job's number in sbatch's array, or None."""
    return int(values[0][1]) if values and spec.slurm is not None and _is_array(spec) else None


def _default_output(which: Which, is_single: bool) -> str:
    again = f".{which.attempt}" if which.attempt > 1 else ""
    if is_single:
        return f"aver-{which.job}{again}.out"
    return os.path.join(output_folder(which.run), f"{_file_name(which)}{again}.out")


def _file_name(which: Which) -> str:
    """The job's name, where that is the name of a file which no other job of the run has; else with `#` and its number.

    So `#7` at the end of a name is job 7's, whatever the jobs are called.
    """
    name = which.name
    end = name.rstrip("0123456789")
    looks_numbered = len(end) < len(name) and end.endswith((".", "#"))  # as if it were an attempt's, or job's
    if len(os.fsencode(name)) > LONGEST_FILE_NAME_BYTES:
        return f"#{which.job}"
    return f"{name.replace('/', '_')}#{which.job}" if "/" in name or looks_numbered else name


def output_folder(run: int) -> str:
    """The folder of a flow's default outputs, below the folder that it was submitted from."""
    return f"aver-{run}"


def _is_array(spec: JobSpec) -> bool:
    from aver.spec.sbatch.array import is_array

    return is_array(spec)


def _filled(text: str, values: Mapping[str, str]) -> str:
    if not values:
        return text
    from aver.plan.placeholders import fill

    return fill(text, values)
