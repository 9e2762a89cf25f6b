"""Which background jobs are waited for all the same: those that a foreground job needs."""

from __future__ import annotations

from aver.model.job import FlowSpec
from aver.plan.planner import Plan


def promoted_jobs(*flows: FlowSpec) -> frozenset[str]:
    """Background jobs that a foreground job needs; `flows` are the run's own and what was generated later."""
    if not any(spec.background for flow in flows for spec in flow.jobs):
        return frozenset()
    plan = Plan(flows[0])
    for flow in flows[1:]:
        plan.add(flow)
    return plan.promoted
