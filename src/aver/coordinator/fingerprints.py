"""What the files of a job were when it completed: size and time of change of each, and of inputs the SHA-256.

Hashing happens in the background, after the completion is durable, so that a large input holds nobody up. A file
that changed after the job began is left out: nobody knows what the job read of it, and `aver reinit` then goes by its
time. The same file is hashed once while it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from aver.client.input_files import find_files, mark_files, note_files
from aver.client.job_files import Which, job_files
from aver.coordinator.background import Background, Failed
from aver.coordinator.state.run import LiveRun
from aver.model.events import Event, Fingerprinted, Observed
from aver.model.record import Record
from aver.model.states import State
from aver.plan.placeholders import fill


class Due(Record):
    """One job's files, to be looked at."""

    at: float
    run: int
    job: int
    attempt: int
    started_at: float
    folder: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Fingerprinter:
    """Takes completions; `emit` gets a Fingerprinted event for each, later and in the loop's thread."""

    def __init__(self, background: Background, emit: Callable[[Event], None]) -> None:
        self._background = background
        self._emit = emit
        self._known: dict[tuple[str, int, int], str] = {}

    def note(self, events: Iterable[Event], runs: dict[int, LiveRun]) -> None:
        """Fingerprint the files of the jobs that these durable events completed."""
        for event in events:
            if not isinstance(event, Observed) or event.verdict is None or event.state is not State.COMPLETED:
                continue
            run = runs.get(event.run)
            index = run.index_of(event.job) if run is not None else None
            if run is None or index is None or event.usage is None:
                continue
            spec = run.spec(index)
            if spec.read_files or spec.written_files:
                due = _due(event, event.usage.started_at, run, index)
                self._background.run(f"inputs {due.folder}", partial(self._look, due), self._take)

    def _look(self, due: Due) -> Fingerprinted:
        marks = mark_files(find_files(due.folder, due.inputs), due.started_at, self._known)
        outputs = note_files(find_files(due.folder, due.outputs))
        return Fingerprinted(due.at, due.run, due.job, due.attempt, tuple(marks), tuple(outputs))

    def _take(self, found: Fingerprinted | Failed) -> None:
        if isinstance(found, Fingerprinted):
            self._emit(found)


def _due(event: Observed, started_at: float, run: LiveRun, index: int) -> Due:
    """The job's files with its values in them, and the folder that they are relative to."""
    spec, values = run.spec(index), run.values(index)
    which = Which(run.number, run.job_number(index), run.name(index), 1, values)
    folder = job_files(run.submission, spec, which, run.is_single).folder
    inputs, outputs = (
        tuple(fill(pattern, dict(values)) for pattern in patterns) for patterns in (spec.read_files, spec.written_files)
    )
    return Due(event.at, event.run, event.job, event.attempt, started_at, folder, inputs, outputs)
