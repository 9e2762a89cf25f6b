"""Attempts that witnesses of a home have, or had, and that its store does not know: it has lost commits.

An intent is durable before its order goes out, so this is so only after somebody removed `aver.db-wal`, or put an
older copy of the store in its place. Nobody ends such a job; nobody can say how it ended, either, but its journal.
"""

from __future__ import annotations

import os
from pathlib import Path

from aver.engines.local.census import JOURNAL_FD, living_witnesses
from aver.engines.local.slot import split_lines, words_of
from aver.home import Home
from aver.model.record import Record
from aver.store.read.reader import Reader


class UnknownAttempt(Record):
    """`witness`: the process that has it; None if that is gone."""

    key: str
    job: int
    attempt: int
    witness: int | None
    has_ended: bool


def unknown_attempts(home: Home, reader: Reader | None) -> list[UnknownAttempt]:
    """Those that the store lacks, by job. Journals are read before the store, which is ahead of them.

    A job that has ended and that the store does not know any more was pruned, unless its number is still to be given.
    """
    held = _held(home.witnesses)
    if not held or reader is None:
        return held
    keys, jobs, next_id = reader.attempt_keys({one.job for one in held})
    return [
        one for one in held
        if one.key not in keys and (not one.has_ended or one.job in jobs or one.job >= next_id)
    ]  # fmt: skip


def running_words(home: Home, reader: Reader | None) -> list[str]:
    """A sentence for each job that runs without the store's knowing."""
    running = [one for one in unknown_attempts(home, reader) if one.witness is not None and not one.has_ended]
    return [f"job {one.job} runs under witness {one.witness}, and the store does not know it" for one in running]


def _held(folder: Path) -> list[UnknownAttempt]:
    """All attempts that journals have the beginning of, once each, by job."""
    try:
        living = living_witnesses(folder)
        numbers = {int(path.stem) for path in folder.glob("*.log") if path.stem.isdecimal()} | {*living}
    except OSError:
        return []
    found: dict[str, UnknownAttempt] = {}
    for number in sorted(numbers):
        witness = living.get(number)
        for line in _lines(folder / f"{number}.log", witness):
            _note(found, line, witness)
    return sorted(found.values(), key=lambda one: (one.job, one.attempt, one.key))


def _note(found: dict[str, UnknownAttempt], line: bytes, witness: int | None) -> None:
    try:
        words = words_of(line)
        _, job, attempt, *rest = words["key"].split(".")
        if words["ev"] in ("begin", "end") and len(rest) == 1:  # a task has more parts
            has_ended = words["ev"] == "end"
            found[words["key"]] = UnknownAttempt(words["key"], int(job), int(attempt), witness, has_ended)
    except (ValueError, KeyError, AttributeError):
        return  # a line that no witness writes


def _lines(journal: Path, witness: int | None) -> list[bytes]:
    """Of the journal, through its witness if it has lost its name."""
    for path in (os.fspath(journal), *([] if witness is None else [f"/proc/{witness}/fd/{JOURNAL_FD}"])):
        try:
            with open(path, "rb") as file:
                return split_lines(file.read())[0]
        except OSError:
            continue
    return []
