"""What a terminal shows in place of exits, Slurm's reasons and columns of numbers: words that a newcomer knows."""

from __future__ import annotations

from collections.abc import Sequence

from aver.cli.output.documents import AttemptFacts
from aver.cli.output.table import Table
from aver.client.documents import ExitFacts
from aver.client.use.series import AttemptUse, spark
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.states import State
from aver.render import verdict

SPARK = 40  # signs of memory and CPUs over time


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


def use_over_time(attempt: AttemptFacts, use: AttemptUse) -> list[tuple[str, str]]:
    """Two lines of signs, from left to right, each against what was asked for or else its own highest point."""
    memory, cpus = [one.memory_bytes for one in use.points], [one.cpus for one in use.points]
    most, busiest = max(memory), max((one for one in cpus if one is not None), default=0.0)
    of = "" if attempt.mem_bytes is None else f" of {verdict.bytes_words(attempt.mem_bytes)}"
    room = "" if attempt.cpus is None else f" of {attempt.cpus}"
    return [
        ("  memory", f"{spark(memory, attempt.mem_bytes or most, SPARK)} up to {verdict.bytes_words(most)}{of}"),
        ("  cpus", f"{spark(cpus, attempt.cpus or busiest, SPARK)} up to {busiest:.1f}{room}"),
    ]
