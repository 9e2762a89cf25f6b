"""`aver allocate`: more allocations for a run whose jobs run in them."""

from __future__ import annotations

import click

from aver.cli.options import ADDRESS, json_option
from aver.cli.output.documents import Acted, Done
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.errors import UsageError
from aver.protocol.messages import Allocate, Allocated
from aver.spec.flow.allocation import allocation_of
from aver.store.read.rows import RunRow


class WordsAfterRun(click.Command):
    """What comes right after the run are its words, though they begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        valued = ("--allocations", "--headroom")
        places = (place for place, word in enumerate(args) if not word.startswith("-"))
        run = next((place for place in places if place == 0 or args[place - 1] not in valued), None)
        if run is not None and len(args) > run + 1:
            args = [*args[:run], *args[run + 2 :], "--", args[run], args[run + 1]]
        return super().parse_args(ctx, args)


@click.command("allocate", cls=WordsAfterRun)
@click.argument("run", metavar="RUN", type=ADDRESS)
@click.argument("words", metavar="WORDS")
@click.option("--allocations", metavar="N", help="Number of allocations, one after the other (default: 1).")
@click.option(
    "--headroom", metavar="TIME", help="Time at the end of an allocation in which no step runs (default: 120 s)."
)
@json_option
def command(run: str, words: str, allocations: str | None, headroom: str | None, as_json: bool) -> None:
    """Get more Slurm allocations for a run that was submitted with --allocation.

    The run keeps the allocations that it has; its jobs go where there is room. WORDS are options of
    sbatch in one argument.

    \b
    Examples:
      aver allocate 3 "-N 4 -t 4:00:00"
      aver allocate 3 "-N 1 --mem=0 -t 30" --allocations 2
    """
    session = Session()
    wish = allocation_of(words, allocations, headroom)
    found = session.find(run)
    if not isinstance(found, RunRow) and len(found) != 1:
        raise UsageError(f"{run} names several jobs; give the number of a run")
    number = found.id if isinstance(found, RunRow) else found[0].run
    assert wish is not None  # there are words
    session.ask(Allocate(number, wish, user_name()), Allocated)
    answer(session.output, Acted("allocate", (Done(number, f"asks for {wish.count} more"),)), as_json)
