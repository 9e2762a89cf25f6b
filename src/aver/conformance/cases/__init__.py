"""The table of cases: one module a theme, one entry a case."""

from __future__ import annotations

from aver.conformance.cases import (
    alone,
    arrays,
    cancels,
    dependencies,
    exits,
    launch,
    limits,
    memory,
    nodes,
    queries,
    queue,
    refusals,
    signals,
    steps,
    tasks,
    variables,
)
from aver.conformance.model import Case

CASES: tuple[Case, ...] = (
    *exits.CASES,
    *signals.CASES,
    *steps.CASES,
    *tasks.CASES,
    *limits.CASES,
    *memory.CASES,
    *cancels.CASES,
    *arrays.CASES,
    *dependencies.CASES,
    *queue.CASES,
    *launch.CASES,
    *alone.CASES,
    *variables.CASES,
    *nodes.CASES,
    *refusals.CASES,
    *queries.CASES,
)
