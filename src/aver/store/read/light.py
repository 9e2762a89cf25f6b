"""Reads for commands that are called in loops: rows as they are stored, with as few imports as can be.

What the rows mean is said by who asks for them (`aver.slurm_cli.facts`); `store.read.reader` is for everybody else.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.store.columns import LightJob, LightStep, select_light_job, select_light_step
from aver.store.read.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

UNSETTLED = ("PENDING", "SUBMITTED", "RUNNING", "SUSPENDED", "COMPLETING", "SETTLING")
UNSETTLED_SQL = "(" + ", ".join([f"'{word}'" for word in UNSETTLED]) + ")"


class LightReader(Database):
    def unsettled(self) -> list[LightJob]:
        """All jobs that are not settled, by number."""
        chosen = f"j.run IN (SELECT id FROM runs WHERE state IN {UNSETTLED_SQL}) AND j.state IN {UNSETTLED_SQL}"
        return self._jobs(chosen, ())

    def since(self, at: float) -> list[LightJob]:
        """All jobs that are not settled, or ended at `at` or later."""
        return self._jobs(f"j.state IN {UNSETTLED_SQL} OR j.ended_at >= ?", (at,))

    def between(self, start: float, end: float) -> list[LightJob]:
        """All jobs that were submitted before `end`, and had not ended before `start`."""
        return self._jobs("j.submitted_at <= ? AND (j.ended_at IS NULL OR j.ended_at >= ?)", (end, start))

    def numbered(self, numbers: Iterable[int]) -> list[LightJob]:
        """The jobs of these numbers, and all jobs of the runs of these numbers."""
        text = _array(numbers)
        within = "IN (SELECT value FROM json_each(?))"
        return self._jobs(f"j.id {within} OR j.run {within}", (text, text))

    def attempts(self, jobs: Iterable[int]) -> list[LightJob]:
        """Each attempt of these jobs, by job and attempt."""
        text = (
            f"SELECT {select_light_job(is_earlier=True)} FROM jobs AS j JOIN attempts AS a ON a.job = j.id "
            "WHERE j.id IN (SELECT value FROM json_each(?)) ORDER BY j.id, a.attempt"
        )
        return list(map(LightJob, self.fetch(text, (_array(jobs),))))

    def steps(self, jobs: Iterable[int]) -> list[LightStep]:
        """The steps of these jobs, by job, attempt and number."""
        text = (
            f"SELECT {select_light_step()} FROM steps AS s LEFT JOIN tasks AS t "
            "ON t.job = s.job AND t.attempt = s.attempt AND t.step = s.step "
            "WHERE s.job IN (SELECT value FROM json_each(?)) GROUP BY s.job, s.attempt, s.step "
            "ORDER BY s.job, s.attempt, s.step"
        )
        return list(map(LightStep, self.fetch(text, (_array(jobs),))))

    def flows(self, runs: Iterable[int]) -> list[tuple[int, str, str]]:
        """Run, kind and data of the events that made the jobs of these runs, in order."""
        text = (
            "SELECT run, kind, data FROM events INDEXED BY events_flow WHERE run IN (SELECT value FROM json_each(?)) "
            "AND kind IN ('RunSubmitted', 'JobsGenerated') ORDER BY seq"
        )
        return self.fetch(text, (_array(runs),))

    def asked(self, runs: Iterable[int]) -> list[tuple[float, int, int | None, str, str]]:
        """Time, run, job, kind and data of what people asked for and of flows that were replaced, in order."""
        text = (
            f"SELECT at, run, job, kind, data FROM events {self.asked_index} "
            "WHERE run IN (SELECT value FROM json_each(?)) "
            "AND kind IN ('PersonAsked', 'FlowReplaced') ORDER BY seq"
        )
        return self.fetch(text, (_array(runs),))

    def active_in(self, run: int) -> int:
        """How many jobs of a run have started and are not settled."""
        text = f"SELECT count(*) FROM jobs WHERE run = ? AND state IN {UNSETTLED_SQL} AND started_at IS NOT NULL"
        return int(self.fetch(text, (run,))[0][0])

    def observed(self, job: int, attempt: int) -> list[tuple[float, str, str | None]]:
        """Time and data of what sources said of an attempt, and their words if they are not in the data; in order."""
        text = f"SELECT at, data, {self.said_column} FROM events WHERE job = ? AND attempt = ? AND kind = 'Observed'"
        return self.fetch(f"{text} ORDER BY seq", (job, attempt))

    def newest_number(self) -> int:
        """Above every number that a run or job ever had."""
        rows = self.fetch("SELECT value FROM meta WHERE key = 'next_id'", ())
        return int(rows[0][0]) if rows else 1

    def _jobs(self, chosen: str, parameters: Sequence[Any]) -> list[LightJob]:
        text = (
            f"SELECT {select_light_job(is_earlier=False)} FROM jobs AS j "
            f"LEFT JOIN attempts AS a ON a.job = j.id AND a.attempt = j.attempt WHERE {chosen} ORDER BY j.id"
        )
        return list(map(LightJob, self.fetch(text, parameters)))


def _array(numbers: Iterable[int]) -> str:
    return "[" + ",".join([str(number) for number in numbers if -(1 << 63) <= number < 1 << 63]) + "]"
