"""Batches of generated jobs."""

from __future__ import annotations

import pytest

from aver.model.job import JobSpec, Shell
from aver.model.record import replace
from aver.spec.flow.file import parse_flow
from aver.spec.flow.generated import parse_generated
from aver.spec.mistakes import SpecError

RUN = (JobSpec("old", Shell("x")),)


def complaints(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_generated(text, "more.json", known=RUN, now=0.0)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    "text",
    [
        '{"new": {"run": "y", "needs": ["old"]}}',
        '[{"name": "new", "run": "y", "needs": "old"}]',
        '{"jobs": {"new": {"run": "y", "needs": "o*"}}, "defaults": {"cpus": 1}}',
    ],
)
def test_forms(text: str) -> None:
    """A map, a list, or a map with jobs; they may need jobs of the run."""
    flow = parse_generated(text, "more.json", known=RUN, now=0.0)
    assert [job.name for job in flow.jobs] == ["new"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"old": {"run": "y"}}', 'more.json:1:2: duplicate job name "old"; the run has a job of that name already'),
        ('{"a": {"run": "y", "needs": "odl"}}', 'more.json:1:29: job "a" needs "odl", but this flow has no such job; '
         'did you mean "old"?'),
        ('{"a": {"run": "y", "needs": "b"}, "b": {"run": "y", "needs": "a"}}',
         "more.json:1:2: jobs need each other in a cycle: a -> b -> a; take one need out"),
        ('{"a": ', "more.json:1:7: not JSON: Expecting value"),
        ("", "more.json:1:1: the file is empty"),
        ("{}", "more.json:1:1: there are no jobs; write at least one, such as hello: {run: echo hello}"),
    ],
)  # fmt: skip
def test_mistakes(text: str, complaint: str) -> None:
    """A malformed, cyclic or duplicate batch is refused with its place."""
    assert complaints(text) == [complaint]


FLOW = """
params: {n: 3}
defaults:
  cpus: 2
  tasks: 3
  mem: 1G
  time: 10m
  signal: TERM@1m
  retry: 2
  env: {A: "{n}", B: x}
  shell: sh
  output: "%j.txt"
  append: true
  tags: [late]
  kill_wait: 3
  slurm_options: [--nice]
  engine: slurm
jobs:
  old: {run: "x {n}", engine: local}
"""


def test_defaults_and_params_of_the_flow_reach_generated_jobs() -> None:
    """As if they stood in the flow; the batch's own defaults come before them, where it runs is its maker's word."""
    flow = parse_flow(FLOW, "f.yaml", now=0.0)
    text = '{"jobs": {"new": {"run": "y {n}"}, "own": {"run": "z", "cpus": 1}}, "defaults": {"env": {"B": "y"}}}'
    new, own = parse_generated(text, "more.json", known=flow.jobs, now=0.0, flow=flow).jobs
    inside = parse_flow(FLOW + "  new: {run: 'y {n}', env: {B: y}}\n", "f.yaml", now=0.0).jobs[1]
    assert new == replace(inside, engine=None)
    assert (new.params, dict(new.env)) == ((("n", "3"),), {"A": "{n}", "B": "y"})
    assert (own.request.cpus, own.params) == (3, (("n", "3"),))


def test_a_flow_without_defaults_has_none_for_generated_jobs() -> None:
    assert parse_flow("jobs: {a: {run: x}}", "f.yaml", now=0.0).defaults is None
    assert parse_flow("engine: slurm\njobs: {a: {run: x}}", "f.yaml", now=0.0).defaults is None
