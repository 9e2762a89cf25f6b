"""Failed tasks of steps on a cluster, told to whoever is attached: at the first failure, and again at the step's end.

Where Aver's own `srun` starts them, that says it itself, in the job's own output.
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.cli.session import Session
from aver.cli.steps import steps_facts
from aver.model.states import State
from aver.store.read.rows import JobRow


class StepNews:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._told: set[tuple[int, int, int, bool]] = set()
        self._engines: dict[tuple[int, int], str] = {}  # by job and attempt

    def of(self, jobs: Sequence[JobRow]) -> list[str]:
        """The summaries of steps of these jobs in which a task failed, each where it was not told before."""
        from aver.engines.registry import capabilities_of  # start-up is short

        found = []
        for job in jobs:
            engine = self._engine(job) if job.attempt else None
            if engine is None or not capabilities_of(engine).tells_steps:
                continue
            for step in steps_facts(self._session, job):
                has_failed = any(task.state != State.COMPLETED for task in step.task_ends)
                mark = (job.id, step.attempt, step.step, step.is_settled)
                if has_failed and mark not in self._told:
                    self._told.add(mark)
                    found.append(step.summary)
        return found

    def _engine(self, job: JobRow) -> str | None:
        key = (job.id, job.attempt)
        if key not in self._engines:
            rows = self._session.found_reader(str(job.id)).attempts(job.id)
            self._engines |= {(row.job, row.attempt): row.engine for row in rows}
        return self._engines.get(key)
