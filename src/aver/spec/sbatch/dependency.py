"""Slurm's `--dependency`: `afterok:7:8,afterany:9`, `after:7+5?afternotok:8`, `singleton`.

Each job that is named becomes one term. Terms are joined by `,` (all of them) or by `?` (one of them); with both in
one text one term is enough.
"""

from __future__ import annotations

import re

from aver.model.job import After, AfterKind, Afters

_JOB = re.compile(r"([0-9]{1,9})(?:_([0-9]{1,9}|\*))?(?:\+([0-9]{1,7}))?")
_MINUTE_S = 60


def parse_dependency(text: str, ends_if_never: bool = False) -> Afters | None:
    """Read a dependency; None for an empty one, ValueError for anything that Slurm refuses."""
    if not text:
        return None
    is_any = "?" in text
    terms: list[After] = []
    for part in text.replace("?", ",").split(","):
        terms += _terms(part, text)
    return Afters(tuple(terms), is_any, ends_if_never)


def _terms(part: str, text: str) -> list[After]:
    if part.lower() == AfterKind.SINGLETON:
        return [After(AfterKind.SINGLETON)]
    word, _, listed = part.partition(":")
    if word.isdigit():
        word, listed = AfterKind.AFTERANY, part
    try:
        kind = AfterKind(word.lower())
    except ValueError:
        raise _wrong(text) from None
    if kind is AfterKind.SINGLETON:
        raise _wrong(text)
    return [_one(kind, job, text) for job in listed.split(":")]


def _one(kind: AfterKind, job: str, text: str) -> After:
    match = _JOB.fullmatch(job)
    if match is None or not job.isascii() or (match[3] and kind is not AfterKind.AFTER):
        raise _wrong(text)
    index = None if match[2] in (None, "*") else int(match[2])
    return After(kind, ((int(match[1]), index),), int(match[3] or 0) * _MINUTE_S)


def _wrong(text: str) -> ValueError:
    return ValueError(f"{text!r} is not a dependency: give afterok:7, after:7+5, afterany:7:8 or singleton")
