"""What a table says on a terminal in place of exits and Slurm's reasons: words that a newcomer knows."""

from __future__ import annotations

from collections.abc import Sequence

from aver.cli.output.table import Table
from aver.client.documents import ExitFacts
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.states import State
from aver.render import verdict


def reason_words(state: State, status: ExitFacts | None, reason: str | None) -> str:
    ended = None if status is None else ExitStatus(status.code, status.signal)
    return verdict.short_words(state, ended, reason or "")


def in_words(table: Table, words: Sequence[str]) -> Table:
    """For a terminal: how each row ended in words, in place of exits and Slurm's reasons."""
    columns = {head: at for at, head in enumerate(table.heads)}
    reason = columns["REASON"]
    rows = tuple(
        (*row[:reason], said or verdict.NOTHING, *row[reason + 1 :])
        for row, said in zip(table.rows, words, strict=True)
    )
    silent = tuple(
        (columns[head], tuple(row[columns[head]] for row in rows)) for head in ("EXIT", "RC") if head in columns
    )
    return replace(table, rows=rows, silent=(*table.silent, *silent))


def bad_first_text(counts: dict[str, int]) -> str:
    """`1 FAILED, 3 COMPLETED`: what is cut off says least."""
    good = (State.SKIPPED, State.COMPLETED)
    order = [*(state for state in State if state not in good), *good]
    return ", ".join(f"{counts[state]} {state}" for state in order if counts.get(state)) or verdict.NOTHING
