"""Longer queries of the reader."""

from __future__ import annotations

from aver.store.columns import select_outcome
from aver.store.read.light import UNSETTLED_SQL

# Each job with each of its attempts that an engine was given; `{which}` and `{indexed}` are of the jobs `j`.
GIVEN = "NOT (a.state = 'PENDING' AND a.reason = 'None')"
_GIVEN_TO = f"attempts AS a ON a.job = j.id AND {GIVEN}"
OUTCOMES = (
    f"SELECT {select_outcome()} FROM jobs AS j {{indexed}} LEFT JOIN {_GIVEN_TO} "
    "WHERE j.run = ? {which} ORDER BY j.id, a.attempt LIMIT ?"
)
# As the index `jobs_failed` has them: settled, and not COMPLETED.
FAILED = f"state NOT IN ('COMPLETED', {UNSETTLED_SQL.strip('()')})"
FAILED_JOBS = f"AND j.{FAILED}"

# Jobs of a run that have steps: of a million jobs that have none, none is read.
WITH_STEPS = """run = ?1 AND id IN (SELECT job FROM steps WHERE job BETWEEN
    (SELECT min(id) FROM jobs WHERE run = ?1) AND (SELECT max(id) FROM jobs WHERE run = ?1))"""

# How many jobs of a run are in each state, without reading those that completed; NULL: how many jobs there are.
COUNTS = f"""SELECT state, count(*) FROM jobs INDEXED BY jobs_unsettled
    WHERE ended_at IS NULL AND state IN {UNSETTLED_SQL} AND run = ?1 GROUP BY state
    UNION ALL SELECT state, count(*) FROM jobs INDEXED BY jobs_failed
    WHERE run = ?1 AND {FAILED} GROUP BY state
    UNION ALL SELECT NULL, jobs FROM runs WHERE id = ?1"""
COUNTS_BEFORE_12 = "SELECT state, count(*) FROM jobs WHERE run = ? GROUP BY state"

# What makes the live state of a run: jobs of which all events are replayed, and all events; `{ranges}` is an index.
REPLAYED_JOBS = f"""run = ?1 AND (state IN {UNSETTLED_SQL} OR (attempt > 1 AND EXISTS (
    SELECT 1 FROM events WHERE run = ?1 AND kind IN ('RunSubmitted', 'JobsGenerated')
    AND json_extract(data, '$.submission.flow.retry_budget') IS NOT NULL)))"""
REPLAYED_EVENTS = f"""
    SELECT seq FROM events WHERE run = ?1 AND kind IN ('RunSubmitted', 'JobsGenerated')
    UNION SELECT seq FROM events WHERE run = ?1 AND kind IN ('PersonAsked', 'FlowReplaced')
    UNION SELECT seq FROM events {{ranges}} WHERE run = ?1 AND kind = 'JobsEnded'
    UNION SELECT seq FROM events WHERE job IN (SELECT id FROM jobs WHERE {REPLAYED_JOBS})"""
