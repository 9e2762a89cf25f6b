"""Outcomes of a run with very many jobs: of those that never began, the first of each kind and how many there are.

A run of a million jobs that was cancelled has a handful of kinds; nothing here reads a row for each job.
"""

from __future__ import annotations

from collections import Counter

from aver.model.states import UNSETTLED, State
from aver.store.columns import Outcome
from aver.store.read.queries import FAILED_JOBS
from aver.store.read.reader import Reader

MOST_KINDS = 100  # where there are more, all rows are read
ALIKE = (
    State.CANCELLED,
    State.SKIPPED,
    State.DEADLINE,
)  # what such a job's state and reason say is all there is to say


def failures(reader: Reader, run: int, most: int) -> tuple[list[Outcome], dict[int, int]]:
    """The settled jobs of a run that did not complete; of those alike that never began, at most `most`.

    And by the last job that was read of its kind, how many more there are.
    """
    kinds = _kinds(reader, run)
    if not any(_is_cut(kind, most) for kind in kinds) or len(kinds) > MOST_KINDS:
        return reader.outcomes(run, only_failures=True), {}
    rows: list[Outcome] = []
    left_out: dict[int, int] = {}
    for kind in kinds:
        state, reason, is_unbegun, count = kind
        limit = most if _is_cut(kind, most) else -1
        which = f"{FAILED_JOBS} AND j.state = ? AND j.reason = ? AND j.attempt {'=' if is_unbegun else '>'} 0"
        found = reader.outcomes_of(run, which, (state, reason), limit, "jobs_failed")
        if limit > 0 and found:
            left_out[found[-1].job] = count - len(found)
        rows += found
    return sorted(rows, key=lambda row: (row.job, row.attempt or 0)), left_out


def first_outcomes(reader: Reader, run: int, most: int) -> tuple[list[Outcome], dict[State, int]] | None:
    """All jobs that began, and of each kind that did not the first `most`; and how many jobs are in each state.

    None: all rows are to be read.
    """
    kinds = [kind for kind in _kinds(reader, run) if kind[2]]
    counts = reader.counts(run)
    if len(kinds) > MOST_KINDS or reader.version < 12:
        return None
    rows = reader.begun_outcomes(run)
    begun = Counter({row.job: row.job_state for row in rows}.values())
    if begun[State.COMPLETED] != counts.get(State.COMPLETED, 0):  # some were taken over from an earlier run
        return None
    known = {row.job for row in rows}
    for state, reason, _, _ in kinds:
        which = f"{FAILED_JOBS} AND j.state = ? AND j.reason = ? AND j.attempt = 0"
        found = reader.outcomes_of(run, which, (state, reason), most, "jobs_failed")
        rows += [row for row in found if row.job not in known]
    for one in UNSETTLED & counts.keys():
        which = "AND j.ended_at IS NULL AND j.state = ?"
        found = reader.outcomes_of(run, which, (one,), most + begun[one], "jobs_unsettled")
        rows += [row for row in found if row.job not in known]
    return sorted(rows, key=lambda row: (row.job, row.attempt or 0)), counts


def _is_cut(kind: tuple[str, str, bool, int], most: int) -> bool:
    state, _, is_unbegun, count = kind
    return is_unbegun and state in ALIKE and count > most


def _kinds(reader: Reader, run: int) -> list[tuple[str, str, bool, int]]:
    """State, reason, whether they never began, and how many: of the settled jobs that did not complete."""
    if reader.version < 12:
        return []
    text = (
        f"SELECT j.state, j.reason, j.attempt, count(*) FROM jobs AS j INDEXED BY jobs_failed WHERE j.run = ? "
        f"{FAILED_JOBS} GROUP BY j.state, j.reason, j.attempt"
    )
    counts: Counter[tuple[str, str, bool]] = Counter()
    for state, reason, attempt, count in reader.fetch(text, (run,)):
        counts[state, reason, attempt == 0] += count
    return [(*kind, count) for kind, count in counts.items()]
