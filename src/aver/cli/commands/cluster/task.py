"""`aver task`: one task under its witness, for launchers that are not srun.

Inside Aver's jobs on Slurm our srun does this by itself. It never stands in a task's way: outside of such a job, and
where there is no witness, the command runs as it is.
"""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Mapping, Sequence

import click

from aver import witness
from aver.cli.group import Invocation
from aver.cli.session import Session
from aver.errors import UnreachableError, UsageError

OPEN_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
HYDRA = ("MPI_LOCALRANKID", "MPI_LOCALNRANKS")  # MPICH and Intel MPI: the ranks of one node are a launch
LAUNCHES = ("OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
FIRST_LAUNCH, LAUNCH_COUNT = 10**8, 9 * 10**8  # steps of launchers other than srun: Slurm never counts as far
NOT_FOUND_STATUS = 127
NOT_EXECUTABLE_STATUS = 126


@click.command("task")
@click.pass_obj
def command(invocation: Invocation) -> int:
    """Run one task of a job under its witness; for use with mpirun.

    Inside a job on Slurm, srun does this by itself. Anywhere else the command runs as it is.

    \b
    Examples:
      mpirun -n 4 aver task -- ./simulate input.dat
    """
    if not invocation.command:
        raise UsageError("aver task: name a command after --")
    words = (*witness_words(os.environ, os.getppid()), *invocation.command)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        status = NOT_FOUND_STATUS if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE_STATUS
        Session().output.note(f"can't start {words[0]}: {error.strerror}")
        return status
    except ValueError:
        raise UsageError("a command can't contain a NUL byte") from None


def witness_words(environ: Mapping[str, str], parent: int) -> Sequence[str]:
    """What stands before the command; nothing where no record is wanted or none can be left."""
    key, records = environ.get("AVER_RECORD_KEY"), environ.get("AVER_RECORDS")
    if not key or not records:
        return ()
    try:
        program = os.fspath(witness.binary())
    except UnreachableError:
        return ()
    return (program, "task", "--records", records, "--key", key, *_rank_words(environ, parent), "--")


def _rank_words(environ: Mapping[str, str], parent: int) -> Sequence[str]:
    """Of a rank of mpirun: its step, rank and size. Of a task of srun nothing: Slurm's variables have it."""
    if OPEN_MPI[0] in environ:
        names, launch = OPEN_MPI, next((environ[name] for name in LAUNCHES if name in environ), None)
    elif HYDRA[0] in environ:
        names, launch = HYDRA, None
    else:
        return ()
    step = FIRST_LAUNCH + zlib.crc32(os.fsencode(launch or f"{socket.gethostname()} {parent}")) % LAUNCH_COUNT
    rank, size = (environ.get(name, "") for name in names)
    return ("--step", str(step), "--rank", rank, "--tasks", size)
