"""Why the jobs of a run did not complete: causes from the store, hints from the ends of their logs.

The logs per cause, the bytes per log and the total time (one second) are limited; the answer says how many logs were
read. A hint stands beside a cause and never changes it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from aver.model.record import Record
from aver.model.states import UNSETTLED, State
from aver.render.causes import Cause, Failed, group_causes, is_failure
from aver.render.masking import Masking
from aver.report.hints import Hint, find_hint
from aver.report.results import Line, lines_of, result_of
from aver.report.tails import masked_tail
from aver.report.usage import Requests
from aver.store.columns import Outcome

LOGS_OF_A_CAUSE = 100
LOGS = 400
TAIL_BYTES = 16 * 1024
LONGEST_S = 1.0
HINTS_SHOWN = 5

Paths = Callable[[int, int], Sequence[str]]  # the files that an attempt of a job wrote to


class HintSeen(Record):
    """A hint, the number of logs that have it, and the first job with such a log."""

    hint: Hint
    count: int
    job: int


class CauseSeen(Record):
    """A cause with the hints from its jobs' logs; `logs_read` of `cause.count` logs were read."""

    cause: Cause
    hints: tuple[HintSeen, ...]
    logs_read: int


class Diagnosis(Record):
    """`counts` are the run's jobs by state."""

    causes: tuple[CauseSeen, ...]
    counts: dict[str, int]
    unsettled: int


def diagnose(
    run: int, rows: Sequence[Outcome], requests: Requests, paths: Paths | None, masking: Masking = Masking(),
    left_out: Mapping[int, int] = {},
) -> Diagnosis:  # fmt: skip
    """Group the failures of a run by cause; with `paths`, look for hints in their logs, secrets masked.

    `left_out`: how many jobs like this one have no row.
    """
    lines = [line for line in lines_of(rows) if line.is_newest]
    counts = Counter(line.row.job_state for line in lines)
    for line in lines if left_out else ():
        counts[line.row.job_state] += left_out.get(line.row.job, 0)
    failed = [
        failed_of(line, requests, left_out.get(line.row.job, 0))
        for line in lines
        if is_failure(line.row.job_state, line.row.job_reason)
    ]
    causes = group_causes(run, failed)
    unsettled = sum(count for state, count in counts.items() if state in UNSETTLED)
    return Diagnosis(
        tuple(_with_hints(causes, paths, masking)),
        {state: counts[state] for state in State if counts[state]},
        unsettled,
    )


def failed_of(line: Line, requests: Requests, others: int = 0) -> Failed:
    """Return the job of a newest line with its attempt's request and peak memory; it stands for others like it."""
    row, shown = line.row, result_of(line)
    asked = None if row.request is None else requests(row.request)
    return Failed(
        row.job,
        row.name,
        shown.state,
        shown.reason or "",
        shown.exit,
        shown.detail,
        row.attempt if row.attempt and row.started_at is not None else 0,
        None if asked is None else asked.mem_bytes,
        None if asked is None else asked.time_s,
        row.peak_bytes,
        1 + others,
    )


def _with_hints(causes: Sequence[Cause], paths: Paths | None, masking: Masking) -> list[CauseSeen]:
    deadline = time.monotonic() + LONGEST_S
    left = LOGS
    found = []
    for cause in causes:
        seen: dict[str, list[tuple[Hint, int]]] = {}
        read = 0
        for one in cause.jobs if cause.has_log and paths is not None else ():
            if read >= LOGS_OF_A_CAUSE or left <= 0 or time.monotonic() > deadline:
                break
            assert paths is not None
            hint = hint_of(paths(one.job, one.attempt), masking)
            read += 1
            left -= 1
            if hint is not None:
                seen.setdefault(hint.key, []).append((hint, one.job))
        hints = [HintSeen(pairs[0][0], len(pairs), pairs[0][1]) for pairs in seen.values()]
        hints.sort(key=lambda one: (-one.count, one.job))
        found.append(CauseSeen(cause, tuple(hints), read))
    return found


def hint_of(files: Sequence[str], masking: Masking = Masking()) -> Hint | None:
    """Return the best hint from the end of an attempt's output: from the first file that has one.

    Secrets are masked before a long line is cut: half a secret would not be found any more.
    """
    for path in files:
        tail, _ = masked_tail(path, TAIL_BYTES, masking)
        hint = find_hint(tail) if tail else None
        if hint is not None:
            return hint
    return None
