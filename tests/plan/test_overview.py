"""The overview of a flow: no more nodes than asked for, every job in one of them."""

from __future__ import annotations

import pytest

from aver.model.job import FlowSpec, JobSpec, Need, Needs, Shell
from aver.report.graph.layers import overview


def job(name: str, *needs: str) -> JobSpec:
    return JobSpec(name, Shell("true"), needs=Needs(tuple(Need(one) for one in needs)))


CHAIN = (job("j0"), *(job(f"j{n}", f"j{n - 1}") for n in range(1, 1000)))
WIDE = tuple(job("abcdefghij"[n % 10] * (n % 37 + 1) + str(n)) for n in range(3000))
SMALL = (job("a"), job("b", "a"))


@pytest.mark.parametrize("specs", [CHAIN, WIDE, SMALL], ids=["chain", "wide", "small"])
def test_every_job_is_in_one_of_few_nodes(specs: tuple[JobSpec, ...]) -> None:
    """Also of a long chain, whose layers are joined; edges go down only."""
    shown = overview(FlowSpec("flow", specs), 80)
    assert len(shown.nodes) <= 80
    assert sorted(spec for node in shown.nodes for spec in node.specs) == list(range(len(specs)))
    assert sum(node.jobs for node in shown.nodes) == len(specs)
    assert all(shown.nodes[edge.source].layer < shown.nodes[edge.target].layer for edge in shown.edges)


def test_a_small_flow_is_shown_as_it_is() -> None:
    """Nothing is grouped that need not be."""
    assert [node.label for node in overview(FlowSpec("flow", SMALL), 80).nodes] == ["a", "b"]
