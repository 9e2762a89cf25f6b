"""Do the needs of a flow fit together: what the graph says of them, at the places where they were written."""

from __future__ import annotations

from collections.abc import Sequence

from aver.model.job import FlowSpec, JobSpec
from aver.plan.graph import Graph, GraphError
from aver.spec.flow.job import ReadJob
from aver.spec.mistakes import Mistakes


def check_graph(jobs: Sequence[ReadJob], known: Sequence[JobSpec], mistakes: Mistakes) -> None:
    """Note every mistake in the needs of `jobs`.

    `known` are jobs that exist already and may be needed.
    """
    graph = Graph.beside(known)
    first: dict[str, ReadJob] = {}  # a name that is used twice is noted already
    for job in jobs:
        if graph.spec_named(job.spec.name) is None:
            first.setdefault(job.spec.name, job)
    checked = list(first.values())
    try:
        graph.extend(FlowSpec("", tuple([job.spec for job in checked])))
    except GraphError as error:
        for problem in error.problems:
            job = checked[problem.spec - len(known)]
            places = (one.place for one in job.read_needs.written if one.need.job == problem.need)
            mistakes.add(next(places, job.name), problem.text, problem.hint)
