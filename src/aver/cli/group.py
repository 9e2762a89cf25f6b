"""The click group whose commands are imported when they are called.

`aver --help` shows the short helps that it was given and imports no command.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click

from aver.cli.catalog import GROUPS, SYNONYMS
from aver.version import __version__

MODULES = {name: f"aver.cli.commands.{group}.{name}" for group, (_, helps) in GROUPS.items() for name in helps}
HELPS = {name: text for _, helps in GROUPS.values() for name, text in helps.items()}


OVERVIEW = "aver.cli.commands.look.overview"
NEAR = 0.75  # how alike a word and a command are that it may have been meant for


class Invocation(NamedTuple):
    """What was typed: the whole line, and what came after `--` (None without one)."""

    typed: tuple[str, ...]
    command: tuple[str, ...] | None


class LazyGroup(click.Group):
    """The commands of the catalogue."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        command = importlib.import_module(MODULES[cmd_name]).command
        assert isinstance(command, click.Command)
        command.short_help = HELPS[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, helps in GROUPS.values():
            with formatter.section(heading):
                formatter.write_dl(list(helps.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in SYNONYMS:
            return super().resolve_command(ctx, [*SYNONYMS[name], *args[1:]])
        if name not in MODULES:
            import difflib

            near = difflib.get_close_matches(name, MODULES, n=1, cutoff=NEAR)
            hint = f"did you mean `aver {near[0]}`?" if near else f"a program is run with `aver run -- {name} …`"
            raise click.UsageError(f"no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


def make_group() -> LazyGroup:
    """Return the group with all commands."""
    return LazyGroup(
        name="aver",
        help=HELP,
        epilog=EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        params=[_version_option()],
        invoke_without_command=True,
        callback=_overview,
    )


@click.pass_context
def _overview(ctx: click.Context) -> None:
    """`aver` alone: what runs, what failed, what to type."""
    if ctx.invoked_subcommand is None:
        importlib.import_module(OVERVIEW).show_overview(ctx.get_help)


def _version_option() -> click.Option:
    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            click.echo(f"aver {__version__}")
            ctx.exit()

    return click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show the version."
    )


EPILOG = (
    "Jobs are named by their number (7), or by run and name (3/train, '3/train[seed=2]', '3/tr*'); last or -1 is the "
    "newest run, last/train its job."
)
HELP = """Run batch jobs and flows, and tell the truth about how each of them ended.

\b
aver run -- make test        run a command, show its output, exit as it ended
aver submit train.sh         run a batch script in the background
aver why 7                   what happened to job 7, and what to do next
"""
