"""`aver conformance`: passes its arguments to `aver.conformance`."""

from __future__ import annotations

import click


@click.command(
    "conformance",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]...")
def command(words: tuple[str, ...]) -> int:
    """Compare Slurm's commands with recorded answers of real Slurms.

    \b
    --against WHAT   local: those of `aver env`; slurm: those on PATH; or a
                     folder with them. May be repeated (default: local)
    --case GLOB      only the cases that match; may be repeated
    --as USER        as root: run the commands as this user
    --without NEED   skip the cases that need this
    --jobs N         cases at a time (default: 80 for slurm, else 16)
    --timeout N      seconds for all cases together (default: 240)
    --all            show also the cells that are as expected
    --json           every cell as JSON
    --tables         what the commands printed, as rows of a case file
    --list           list the cases and run nothing
    --page           the generated part of docs/en/reference/conformance.md

    Expectations are those of the release that the commands print.
    The exit status is 0 if every cell is as expected, 1 if not.

    \b
    Examples:
      aver conformance
      aver conformance --against slurm --case 'steps/*'
    """
    from aver.conformance.__main__ import main

    return main(list(words))
