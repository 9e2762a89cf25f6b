"""What the inputs of a job were when it completed: size, time of change and SHA-256 of each file.

Hashing happens in the background, after the completion is durable, so that a large input holds nobody up. A file
that changed after the job began is left out: nobody knows what the job read of it, and `aver reinit` then goes by its
time. The same file is hashed once while it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from aver.client.input_files import find_files, mark_files
from aver.client.job_files import Which, job_files
from aver.coordinator.background import Background, Failed
from aver.coordinator.state.run import LiveRun
from aver.model.events import Event, Fingerprinted, Observed
from aver.model.record import Record
from aver.model.states import State
from aver.plan.placeholders import fill


class Due(Record):
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
    if not spec.read_files:
        return (), ""
    values = run.values(index)
    which = Which(run.number, run.job_number(index), run.name(index), 1, values)
    folder = job_files(run.submission, spec, which, run.is_single).folder
    return tuple(fill(pattern, dict(values)) for pattern in spec.read_files), folder
