"""What the inputs of a job were when it completed: size, time of change and SHA-256 of each file.

Hashing happens in the background, after the completion is durable, so that a large input holds nobody up. A file
that changed after the job began is left out: nobody knows what the job read of it, and `aver reinit` then goes by its
time. The same file is hashed once while it stays as it is.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from aver.coordinator.background import Background, Failed
from aver.coordinator.files import Which, job_files
from aver.coordinator.live import LiveRun
from aver.core.events import Event, FileMark, Fingerprinted, Observed
from aver.core.states import State
from aver.core.template import fill

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Due:
    """One job's inputs, to be looked at."""

    at: float
    run: int
    job: int
    attempt: int
    started_at: float
    folder: str
    patterns: tuple[str, ...]


class Fingerprinter:
    """Takes completions; `emit` gets a Fingerprinted event for each, later and in the loop's thread."""

    def __init__(self, background: Background, emit: Callable[[Event], None]) -> None:
        self._background = background
        self._emit = emit
        self._known: dict[tuple[str, int, int], str] = {}

    def note(self, events: Iterable[Event], runs: dict[int, LiveRun]) -> None:
        """These are durable: look at the inputs of the jobs that completed."""
        for event in events:
            if not isinstance(event, Observed) or event.verdict is None or event.state is not State.COMPLETED:
                continue
            run = runs.get(event.run)
            index = run.index_of(event.job) if run is not None else None
            if run is None or index is None or event.usage is None:
                continue
            patterns, folder = input_patterns(run, index)
            if patterns:
                started_at = event.usage.started_at
                due = Due(event.at, event.run, event.job, event.attempt, started_at, folder, patterns)
                self._background.run(f"inputs {folder}", partial(self._look, due), self._take)

    def _look(self, due: Due) -> Fingerprinted:
        marks = mark_files(find_files(due.folder, due.patterns), due.started_at, self._known)
        return Fingerprinted(due.at, due.run, due.job, due.attempt, tuple(marks))

    def _take(self, found: Fingerprinted | Failed) -> None:
        if isinstance(found, Fingerprinted):
            self._emit(found)


def input_patterns(run: LiveRun, index: int) -> tuple[tuple[str, ...], str]:
    """The job's `inputs` with its values in them, and the folder that they are relative to."""
    spec = run.spec(index)
    if not spec.inputs:
        return (), ""
    values = run.values(index)
    which = Which(run.number, run.job_number(index), run.name(index), 1, values)
    folder = job_files(run.submission, spec, which, run.is_single).folder
    return tuple(fill(pattern, dict(values)) for pattern in spec.inputs), folder


def find_files(folder: str, patterns: Sequence[str]) -> list[str]:
    """The files that the patterns name now, absolute and in order; all files below a folder that is named."""
    found: dict[str, None] = {}
    for pattern in patterns:
        path = os.path.join(folder, pattern)
        names = [path] if os.path.lexists(path) else glob.glob(path, recursive=True)
        for name in sorted(names):
            if os.path.isdir(name):
                for base, folders, files in os.walk(name):
                    folders.sort()
                    found.update((os.path.join(base, file), None) for file in sorted(files))
            else:
                found[os.path.normpath(name)] = None
    return list(found)


def mark_files(
    paths: Iterable[str], changed_before: float, known: dict[tuple[str, int, int], str] | None = None
) -> list[FileMark]:
    """A mark for each regular file that was not changed since; what can't be read has none."""
    marks = []
    for path in paths:
        info = stat_file(path)
        if info is None or info.st_mtime > changed_before:
            continue
        key = (path, info.st_size, info.st_mtime_ns)
        digest = known.get(key) if known is not None else None
        if digest is None:
            digest = hash_file(path)
            again = stat_file(path)
            if digest is None or again is None or (again.st_size, again.st_mtime_ns) != key[1:]:
                continue
            if known is not None:
                known[key] = digest
        marks.append(FileMark(path, info.st_size, info.st_mtime_ns, digest))
    return marks


def stat_file(path: str) -> os.stat_result | None:
    """Of a regular file; None for anything else, and for what is not there."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return info if stat.S_ISREG(info.st_mode) else None


def hash_file(path: str) -> str | None:
    """SHA-256 in hex, or None if it can't be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()
