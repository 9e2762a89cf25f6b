"""How a reading command of Slurm's begins: its options are read, and what is asked about the command itself is said."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import VERSION
from aver.slurm_cli.output import show
from aver.slurm_cli.refusal import Refusal
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
    for name, text in {"version": f"{VERSION}\n", **about}.items():
        if parsed.has(name):
            show(text if isinstance(text, str) else text())
            return None
    return parsed
