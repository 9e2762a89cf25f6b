"""Export a run as CSV (a row per attempt) and as JSON lines (a line per event), streamed.

Unknown is empty in CSV and null in JSON, never 0. Keys and columns are stable: they are added, never renamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from aver.judge.run import return_code
from aver.model.codec import encode
from aver.model.exit import ExitStatus
from aver.render.masking import Masking
from aver.report.csv import csv_rows
from aver.report.story import Story
from aver.store.read.rows import AttemptRow, JobRow, StoredEvent

COLUMNS = (
    "run", "job", "name", "attempt", "state", "exit", "return_code", "reason", "verified", "source", "warnings",
    "detail", "engine", "node", "submitted_at", "planned_at", "started_at", "ended_at", "elapsed_s", "user_s", "sys_s",
    "peak_bytes", "cpus", "gpus", "mem_bytes", "time_s", "key", "is_cpu_least",
)  # fmt: skip


def csv_lines(story: Story) -> Iterator[str]:
    """Yield the header, a row per attempt, and a row per job without attempts."""
    rows = (_row(story, job, one) for job in story.jobs for one in story.attempts.get(job.id) or (None,))
    return csv_rows(chain([COLUMNS], rows))


def _row(story: Story, job: JobRow, attempt: AttemptRow | None) -> Iterable[object]:
    """An attempt's own verdict; the newest attempt of a settled job has the job's, which may be corrected."""
    of = job if attempt is None or (attempt.attempt == job.attempt and job.state.is_settled) else attempt
    verdict = of.verdict
    warnings = story.warnings_of(job) if of is job else of.warnings
    yield from (job.run, job.id, job.name, "" if attempt is None else attempt.attempt, of.state.value)
    yield from (_exit(of.exit), "" if verdict is None else _known(return_code(verdict.state, verdict.exit)), of.reason)
    yield from (_flag(of.verified), of.source or "", "; ".join(warnings), of.detail)
    if attempt is None:
        yield from ("", "", _known(job.submitted_at), "", _known(job.started_at), _known(job.ended_at))
        yield from (_known(job.elapsed_s), *[""] * 9)
        return
    request = attempt.request
    yield from (attempt.engine, attempt.node or "", _known(job.submitted_at), _known(attempt.planned_at))
    yield from (_known(attempt.started_at), _known(attempt.ended_at), _known(attempt.elapsed_s))
    yield from (_known(attempt.user_s), _known(attempt.sys_s), _known(attempt.peak_bytes))
    yield from (request.cpus, request.gpus, _known(request.mem_bytes), _known(request.time_s), attempt.key)
    yield _flag(bool(attempt.is_cpu_least))


def _known(value: float | int | None) -> object:
    return "" if value is None else value


def _exit(status: ExitStatus | None) -> str:
    return "" if status is None else str(status)


def _flag(value: bool | None) -> str:
    return "" if value is None else "true" if value else "false"


def json_lines(events: Iterable[StoredEvent], masking: Masking = Masking()) -> Iterator[str]:
    """Each event as it is stored: its number, its kind and its fields."""
    for stored in events:
        document = encode(stored.event)
        line = {"seq": stored.seq, "kind": type(stored.event).__name__, **document}
        yield json.dumps(masking.document(line), separators=(",", ":")) + "\n"
