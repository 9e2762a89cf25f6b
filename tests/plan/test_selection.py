"""Parts of a flow: which jobs are chosen, what becomes of needs on the others, and mistakes."""

from __future__ import annotations

import pytest

from aver.errors import UsageError
from aver.model.job import FlowSpec, Need, Needs
from aver.plan.selection import Selection, select, without
from aver.spec.flow.file import parse_flow

FLOW = """
jobs:
  prep: {run: x}
  train: {run: "x {s}", matrix: {s: [1, 2]}, needs: prep}
  eval-a: {run: x, needs: train}
  eval-b: {run: "x {s}", matrix: {s: [1, 2]}, needs: {train: same}}
  plot: {run: x, needs: "eval-*"}
  mend: {run: x, needs: {prep: failure}}
  after: {run: x, needs: mend}
  last: {run: x, needs: [plot, mend], if: always}
  other: {run: x}
"""


def read(text: str = FLOW) -> FlowSpec:
    return parse_flow(text, "f.yaml", now=0.0)


def names(flow: FlowSpec) -> list[str]:
    return [spec.name for spec in flow.jobs]


def needs(flow: FlowSpec, name: str) -> Needs:
    return next(spec.needs for spec in flow.jobs if spec.name == name)


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        (Selection(only=("eval-*",)), "eval-a eval-b"),
        (Selection(only=("prep", "other")), "prep other"),
        (Selection(until=("train",)), "prep train"),
        (Selection(until=("eval-b", "other")), "prep train eval-b other"),
        (Selection(start=("train",)), "train eval-a eval-b plot last"),
        (Selection(start=("train",), until=("plot",)), "train eval-a eval-b plot"),
        (Selection(skip=("plot", "mend", "after")), "prep train eval-a eval-b last other"),
        (Selection(skip=("prep",)), "train eval-a eval-b plot last other"),
        (Selection(only=("*",), skip=("eval-?",)), "prep train plot mend after last other"),
    ],
)
def test_what_is_chosen(selection: Selection, left: str) -> None:
    """The rest is named in the flow's order. A job that waits for a failure which can't come is not chosen,
    nor is what needs that job."""
    flow = select(read(), selection)
    assert names(flow) == left.split()
    assert flow.unselected == tuple(name for name in names(read()) if name not in left.split())


def test_needs_on_others_are_dropped() -> None:
    """What is chosen waits for what is chosen alone; edges of globs, members and groups too."""
    flow = select(read(), Selection(only=("train", "plot", "eval-b", "last")))
    assert needs(flow, "train") == Needs()
    assert needs(flow, "eval-b") == needs(read(), "eval-b")
    assert needs(flow, "plot") == needs(read(), "plot")
    assert needs(flow, "last") == Needs((Need("plot"),))
    groups = read("jobs: {a: {run: x}, b: {run: x}, c: {run: x, needs: {any_of: [a, b]}}}")
    assert needs(select(groups, Selection(skip=("a",))), "c") == Needs((), ((Need("b"),),))
    assert needs(select(groups, Selection(only=("c",))), "c") == Needs()


@pytest.mark.parametrize(
    "needs",
    [
        "needs: {a: failure}",
        "needs: {a: [FAILED, TIMEOUT]}",
        "needs: a, if: failure",
        "needs: {any_of: [{a: failure}]}",
    ],
)
def test_what_waits_for_a_failure_of_others(needs: str) -> None:
    """It would run though nothing failed: it is not chosen, and said to be so."""
    flow = select(read(f"jobs: {{a: {{run: x}}, b: {{run: x, {needs}}}, c: {{run: x}}}}"), Selection(skip=("a",)))
    assert (names(flow), flow.unselected) == (["c"], ("a", "b"))


@pytest.mark.parametrize("needs", ["needs: {a: any}", "needs: {a: [COMPLETED, FAILED]}", "needs: a, if: always"])
def test_what_takes_success_of_others(needs: str) -> None:
    """It runs without them."""
    flow = select(read(f"jobs: {{a: {{run: x}}, b: {{run: x, {needs}}}}}"), Selection(only=("b",)))
    assert names(flow) == ["b"]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(only=("trian",)), '--only trian: no job of the flow has that name; did you mean "train"?'),
        (Selection(until=("x*",)), "--until x\\*: no job"),
        (Selection(start=("train[s=1]",)), "give the job, with all its members"),
        (Selection(only=("prep",), skip=("prep",)), "no job of the flow 'flow' is selected"),
        (Selection(only=("mend",)), "no job of the flow 'flow' is selected"),
    ],
)
def test_mistakes(selection: Selection, said: str) -> None:
    """A name that no job has, and a flow of which nothing is left."""
    with pytest.raises(UsageError, match=said.replace("?", "\\?").replace("[", "\\[")):
        select(read(), selection)


def test_a_name_with_a_place() -> None:
    """All members lose their need, or none does."""
    flow = read("jobs: {p-a: {run: x}, p-b: {run: x}, c: {run: 'x {s}', matrix: {s: [a, b]}, needs: 'p-{s}'}}")
    assert needs(without(flow, ["p-a", "p-b"]), "c") == Needs()
    with pytest.raises(UsageError, match="p-a can't be left out: some members of c need it"):
        without(flow, ["p-a"])
    assert without(flow, []) is flow
