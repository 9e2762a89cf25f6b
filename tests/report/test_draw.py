"""Flows drawn as text, DOT and SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from aver.model.job import Condition, FlowSpec, JobSpec, Matrix, Need, Needs, Outcome, Shell
from aver.report.graph.formats import draw_dot, draw_svg, draw_text
from aver.report.graph.layers import MOST_NODES, picture

RUN = Shell("x")


def job(name: str, *needs: str, **more: object) -> JobSpec:
    return JobSpec(name, RUN, needs=Needs(tuple(Need(need) for need in needs)), **more)  # type: ignore[arg-type]


FLOW = FlowSpec(
    "demo",
    (
        job("prep"),
        job("train", "prep", matrix=Matrix((("seed", ("1", "2", "3")),))),
        job("eval", "train", "prep"),
        job("report", "eval", condition=Condition.ALWAYS),
        JobSpec("mend", RUN, needs=Needs((Need("prep", Outcome.FAILURE),))),
        job("page", "prep", background=True),
    ),
)


def test_text() -> None:
    """Each job once, under its deepest need; a matrix is one line."""
    assert draw_text(FLOW) == (
        "demo\n"
        "└─ prep\n"
        "   ├─ train ×3\n"
        "   │  └─ eval  (also needs prep)\n"
        "   │     └─ report  (if always)\n"
        "   ├─ mend  (after failure)\n"
        "   └─ page  (background)\n"
    )


def test_dot() -> None:
    """Nodes by number, labels quoted, edges labelled by outcome."""
    dot = draw_dot(FLOW)
    assert '  n1 [label="train ×3"];' in dot
    assert '  n0 -> n4 [label="failure"];' in dot
    assert dot.count("->") == 6


def test_svg_is_a_document() -> None:
    """It parses, has one group for each node and one curve for each edge, and no node overlaps another."""
    root = ET.fromstring(draw_svg(FLOW))
    space = "{http://www.w3.org/2000/svg}"
    groups = root.findall(f"{space}g")
    assert len(groups) == 6
    assert len(root.findall(f"{space}path")) == 6
    boxes = []
    for group in groups:
        rect = group.findall(f"{space}rect")[-1]
        boxes.append([float(rect.attrib[key]) for key in ("x", "y", "width", "height")])
    for number, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[:number]:
            apart = x >= other_x + other_width or other_x >= x + width
            assert apart or y >= other_y + other_height or other_y >= y + height


@given(st.text(), st.text(min_size=1))
def test_names_are_escaped(title: str, name: str) -> None:
    """Whatever is in them, the SVG stays a document and the DOT keeps its lines."""
    flow = FlowSpec(title, (JobSpec(name, RUN),))
    ET.fromstring(draw_svg(flow).encode("utf-8", "replace"))
    assert draw_dot(flow).count("\n") == 5


def test_big_flows_are_grouped() -> None:
    """A thousand jobs in layers are few nodes, and every job is counted."""
    first = [job(f"a{n}") for n in range(500)]
    second = [job(f"b{n}", "a*") for n in range(500)]
    shown = picture(FlowSpec("big", (*first, *second)))
    assert [node.label for node in shown.nodes] == ["a* (500 jobs)", "b* (500 jobs)"]
    assert [(edge.source, edge.target) for edge in shown.edges] == [(0, 1)]
    chain = [job("j0"), *(job(f"j{n}", f"j{n - 1}") for n in range(1, 2000))]
    assert sum(node.jobs for node in picture(FlowSpec("chain", tuple(chain))).nodes) == 2000
    assert len(draw_text(FlowSpec("chain", tuple(chain))).splitlines()) == 2001
    assert MOST_NODES < 2000
