"""What every surface warns of: steps that were out of memory or ended unseen, while their job may be COMPLETED.

Only steps of a job's newest attempt count. Such a step shows in DerivedExitCode, so jobs without one cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from aver.model.exit_text import step_warning
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow


def step_warnings(reader: Reader, jobs: Iterable[JobRow]) -> dict[int, tuple[str, ...]]:
    """The warnings by job; a job without any is not in it."""
    newest = {job.id: job for job in jobs if job.derived != 0}
    if not newest:
        return {}
    found: dict[int, tuple[str, ...]] = {}
    for row in reader.steps_of_jobs(newest):
        job = newest[row.job]
        if row.attempt != job.attempt:
            continue
        ended_as = row.state if row.state.is_settled else None
        label = f"{row.job}.{row.step} ({row.name})"
        if text := step_warning(label, ended_as, row.derived, is_job_seen=job.exit is not None):
            found[row.job] = (*found.get(row.job, ()), text)
    return found


def step_warnings_of_run(reader: Reader, run: int) -> dict[int, tuple[str, ...]]:
    """The same of all jobs of a run, however many there are."""
    return step_warnings(reader, reader.jobs_with_failed_steps(run))
