"""How a reading command of Slurm's begins: its options are read, and what is asked about the command itself is said."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.output import show
from aver.slurm_cli.refusal import Refusal
from aver.slurm_cli.settings import version_line
from aver.slurm_cli.texts import NULL
from aver.spec.getopt import BadOption, Parsed, Table, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TRY_HELP = '\nTry "{} --help" for more information'


def opened(
    command: str, table: Table, argv: Sequence[str], hint: str = TRY_HELP, **about: str | Callable[[], str]
) -> Parsed | None:
    """The options; None if one of them asked about the command (`about`, by its name, or the version) and was answered.

    Refusal, with the hint behind it, if they are not the command's.
    """
    try:
        parsed = parse(table, argv)
    except BadOption as error:
        raise Refusal(f"{command}: {error}{hint.format(command)}") from None
    for name, text in {"version": lambda: f"{version_line()}\n", **about}.items():
        if parsed.has(name):
            show(text if isinstance(text, str) else text())
            return None
    return parsed


def options_in_words(table: Table, parsed: Parsed) -> str:
    """What -v shows of squeue and sinfo: each option with its value, `iterate     = 0`."""
    lines = []
    for name in sorted(table.takes):
        if name in ("help", "usage", "version"):
            continue
        given = sum(one == name for one, _ in parsed.given)
        if name == "verbose":
            value = str(given)
        elif not table.takes[name]:
            value = "true" if given else "false"
        else:
            value = parsed.get(name) or ("0" if name == "iterate" else NULL)
        lines.append(f"{name:<11} = {value}\n")
    rule = "-" * 29 + "\n"
    return rule + "".join(lines) + rule + "\n\n"
