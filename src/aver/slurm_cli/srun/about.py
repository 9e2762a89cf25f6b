"""What srun says of itself: its help page, its usage line, and with -v the options that count."""

from __future__ import annotations

from aver.slurm_cli import help as texts
from aver.slurm_cli.output import say, show
from aver.slurm_cli.settings import defined_options
from aver.slurm_cli.srun.options import TABLE, WITHOUT_MEANING, Options


def show_help(options: Options) -> int:
    """The page, or with --usage alone the line."""
    if "help" in options.flags:
        what = "Runs tasks as a step of the job that it is called in, or, called alone, as a job of its own."
        show(texts.page(TABLE, "srun [OPTIONS...] executable [args...]", WITHOUT_MEANING, what))
    else:
        show(texts.usage(TABLE, "srun", "executable [args...]"))
    return 0


def say_options(options: Options) -> None:
    flags = [(name, None) for name in options.flags if name not in options.values and name != "verbose"]
    say(*defined_options("srun", [*options.values.items(), *flags, ("verbose", str(options.verbosity))]))
