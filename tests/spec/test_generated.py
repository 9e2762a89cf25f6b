"""Batches of generated jobs."""

from __future__ import annotations

import pytest

from aver.model.job import JobSpec, Shell
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
