"""`aver conformance`: hands its words to `aver.conformance`, which reads them."""

from __future__ import annotations

import click


@click.command(
    "conformance",
    short_help="Compare Slurm's commands with the table of what Slurm prints.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]...")
def command(words: tuple[str, ...]) -> int:
    """Compare Slurm's commands with the table of what Slurm prints.

    \b
    --against WHAT   local: those of `aver env`; slurm: those on PATH; or a
                     folder with them. May be repeated (local without this)
    --case GLOB      only such cases; may be repeated
    --as USER        as root: run the commands as this user
    --without NEED   skip the cases that need this
    --jobs N         cases at a time
    --timeout N      seconds for all cases together
    --all            show the cells that are as expected, too
    --json           every cell as JSON
    --tables         what was seen, in the form of the cases' tables
    --list           list the cases and run nothing
    --page           the part of docs/conformance.md that the cases give

    The exit status is 0 if every cell is as expected, 1 if not.

    \b
    Examples:
      aver conformance
      aver conformance --against slurm --case 'steps/*'
    """
    from aver.conformance.__main__ import main

    return main(list(words))
