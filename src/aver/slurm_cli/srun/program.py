"""What each task of a step runs."""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.srun.options import program_of

if TYPE_CHECKING:
    from aver.slurm_cli.srun.options import Options


def args_of(options: Options, home: str) -> list[str]:
    """The program, or ourselves as what becomes it."""
    own = [os.path.join(home, "bin", "srun"), "--as-task"]
    words = program_of(options)
    if options.get("bcast"):
        from aver.slurm_cli.srun.scripts import copy_program

        words = copy_program(options)
    if "multi-prog" in options.flags:
        words = [*own, "multi-prog", os.path.abspath(options.command[0])]
    elif "pty" in options.flags and os.isatty(0):
        words = [*own, "pty", *words]
    if options.get("task-prolog") or options.get("task-epilog") or "preserve-env" in options.flags:
        from aver.slurm_cli.srun.scripts import surroundings

        words = [*own, "around", surroundings(options), *words]
    return words
