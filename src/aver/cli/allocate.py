"""`aver allocate`: more allocations for a run whose jobs run in them."""

from __future__ import annotations

import click

from aver.cli.acting import done_list
from aver.cli.options import json_option
from aver.cli.output.documents import Acted
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.core.codec import encode
from aver.errors import UsageError
from aver.spec.allocation import allocation_of
from aver.store.rows import RunRow


@click.command(
    "allocate",
    short_help="Take more allocations of Slurm for a run that runs in them.",
    context_settings={"allow_interspersed_args": True},
)
@click.argument("run", metavar="RUN")
@click.argument("words", metavar="WORDS")
@click.option("--allocations", metavar="N", help="So many of them, one after the other (1 without this).")
@click.option("--headroom", metavar="TIME", help="No step runs so long before an allocation's end (120 s).")
@json_option
def command(run: str, words: str, allocations: str | None, headroom: str | None, as_json: bool) -> None:
    """Take more allocations of Slurm for a run that was submitted with --allocation.

    They come beside those that it has: its jobs go where there is room. WORDS are options of sbatch
    in one argument.

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
    session.call("allocate", run=number, allocation=encode(wish), by=user_name())
    did = f"will have {wish.count if wish is not None else 0} more"
    answer(session.output, Acted("allocate", tuple(done_list([{"id": number, "did": did}]))), as_json)
