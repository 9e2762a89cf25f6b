"""Jobs as Slurm's acting commands name them: `7`, `7_3`, `7_[1-3,5]`, and with a step `7.0`, `7_3.1`."""

from __future__ import annotations

import re

from aver.model.slurm_names import HIGHEST_INDEX, number_of_sluid
from aver.slurm_cli.facts import Book

_NAME = re.compile(r"([0-9]{1,9})(?:_([0-9]{1,9}|\[[0-9,:-]*\]|\*)?)?(?:\.([0-9]{1,9}))?")
_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


class NamedJob:
    """What one word names: a number, the indices of an array (None: all of it), a step (None: the job)."""

    def __init__(self, text: str, number: int, indices: tuple[int, ...] | None, step: int | None) -> None:
        self.text = text
        self.number = number
        self.indices = indices
        self.step = step

    def numbers(self, book: Book) -> list[int]:
        """The numbers that the coordinator knows them by; none if there are no such jobs."""
        if self.indices is None:
            return [self.number]
        members = {job.array_index: job.row.id for job in book.numbered([self.number]) if job.array_job == self.number}
        return [members[str(index)] for index in self.indices if str(index) in members]


def parse_job(text: str) -> NamedJob | None:
    """Read one word; None for what names no job."""
    if (number := number_of_sluid(text)) is not None:
        return NamedJob(text, number, None, None)
    match = _NAME.fullmatch(text)
    if match is None or not text.isascii() or int(match[1]) == 0:
        return None
    step = None if match[3] is None else int(match[3])
    listed = match[2]
    if listed is None or listed == "*":
        return NamedJob(text, int(match[1]), None, step)
    indices = _indices(listed)
    return None if indices is None else NamedJob(text, int(match[1]), indices, step)


def split_jobs(text: str) -> list[str]:
    """The words between commas, but for commas inside of brackets."""
    words, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth <= 0:
            words.append(text[start:place])
            start = place + 1
    return [*words, text[start:]]


def _indices(listed: str) -> tuple[int, ...] | None:
    found: list[int] = []
    for part in listed.strip("[]").split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if step == 0 or last < first:
            return None
        found += range(first, min(last, HIGHEST_INDEX) + 1, step)
    return tuple(found)
