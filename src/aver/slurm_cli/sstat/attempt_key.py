"""The key by which the processes of a job's newest attempt are known."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from aver.slurm_cli.facts import Book


def key_of(book: Book, job: int) -> str | None:
    """The key of the newest attempt of a job; None before the first."""
    from pathlib import Path

    from aver.store.read.reader import Reader

    reader = Reader.open(Path(book.home) / "aver.db")
    if reader is None:
        return None
    with reader:
        attempts = reader.attempts(job)
    return attempts[-1].key if attempts else None
