"""What is wrong with a flow's graph, as a value."""

from __future__ import annotations

from aver.model.job import FlowSpec
from aver.plan.graph import Graph, GraphError, Problem


def problems_of(flow: FlowSpec) -> tuple[Problem, ...]:
    """Everything that is wrong with the needs of a flow; empty when it can be planned."""
    try:
        Graph(flow)
    except GraphError as error:
        return error.problems
    return ()
