"""The graph of a run's jobs as SVG, layers from top to bottom, each node coloured by the states of its jobs.

A matrix is one node, and a large flow is grouped: there are never more nodes than somebody can look at. The groups are
those of the whole page: the timeline, the use of resources and the table follow them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from aver.model.record import Record
from aver.model.states import State
from aver.report.graph.layers import Picture, overview
from aver.report.story import WORST_FIRST, Story, clean
from aver.store.read.rows import JobRow

MOST_NODES = 80
NODE_WIDTH, NODE_HEIGHT, _GAP_X, _GAP_Y, _MARGIN, _PER_ROW = 176, 46, 20, 34, 8, 5
_LETTERS = 22
_THINNEST = 3.0


class Group(Record):
    """The jobs of one node of the graph."""

    label: str
    jobs: Sequence[JobRow]

    def states(self) -> Mapping[State, int]:
        counts = Counter(job.state for job in self.jobs)
        return {state: counts[state] for state in WORST_FIRST if counts[state]}


class Groups(Record):
    """Every job is in one group; `of` gives its number."""

    picture: Picture
    groups: Sequence[Group]
    of: Mapping[int, int]


def groups_of(story: Story) -> Groups:
    """The jobs by the nodes of the picture."""
    picture = overview(story.flow, MOST_NODES)
    node_of = {spec: number for number, node in enumerate(picture.nodes) for spec in node.specs}
    members: list[list[JobRow]] = [[] for _ in picture.nodes]
    of: dict[int, int] = {}
    for job in story.jobs:
        number = of[job.id] = node_of.get(story.spec_of(job), 0)
        members[number].append(job)
    labels = [_label(node.label, jobs) for node, jobs in zip(picture.nodes, members, strict=True)]
    return Groups(picture, [Group(label, jobs) for label, jobs in zip(labels, members, strict=True)], of)


def _label(label: str, jobs: Sequence[JobRow]) -> str:
    if len(jobs) == 1:
        return jobs[0].name
    return f"{label.rpartition(' (')[0]} ×{len(jobs)}" if label.endswith(" jobs)") else label


def graph_svg(found: Groups) -> str:
    """The picture; each node can be clicked: it names its job, or its group."""
    place = places(found.picture)
    width = max(x for x, _ in place.values()) + NODE_WIDTH + _MARGIN
    height = max(y for _, y in place.values()) + NODE_HEIGHT + _MARGIN
    parts = [
        f'<svg class="graph" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="group" '
        'aria-label="Graph of the jobs">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    for edge in found.picture.edges:
        (x1, y1), (x2, y2) = place[edge.source], place[edge.target]
        x1, y1, x2 = x1 + NODE_WIDTH // 2, y1 + NODE_HEIGHT, x2 + NODE_WIDTH // 2
        bend = max((y2 - y1) // 2, 12)
        kind = ' class="alternative"' if edge.is_alternative else ""
        title = f"<title>{escape(clean(edge.label))}</title>" if edge.label else ""
        parts.append(
            f'<path{kind} d="M{x1} {y1} C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2 - 1}" marker-end="url(#arrow)">'
            f"{title}</path>"
        )
    parts += [_node(number, group, place[number]) for number, group in enumerate(found.groups)]
    return "".join([*parts, "</svg>"])


def places(picture: Picture) -> dict[int, tuple[int, int]]:
    """Left and top of each node: a layer is one row or several, its nodes below the middle of what they need."""
    needs: dict[int, list[int]] = {}
    for edge in picture.edges:
        needs.setdefault(edge.target, []).append(edge.source)
    layers: dict[int, list[int]] = {}
    for number, node in enumerate(picture.nodes):
        layers.setdefault(node.layer, []).append(number)
    widest = min(_PER_ROW, max(len(layer) for layer in layers.values()))
    place: dict[int, tuple[int, int]] = {}
    top = _MARGIN
    for _, layer in sorted(layers.items()):
        layer.sort(key=lambda number: _middle([place[one][0] for one in needs.get(number, ()) if one in place]))
        for start in range(0, len(layer), _PER_ROW):
            row = layer[start : start + _PER_ROW]
            left = _MARGIN + (widest - len(row)) * (NODE_WIDTH + _GAP_X) // 2
            for column, number in enumerate(row):
                place[number] = (left + column * (NODE_WIDTH + _GAP_X), top)
            top += NODE_HEIGHT + _GAP_Y
    return place


def _middle(places: Sequence[int]) -> float:
    return sum(places) / len(places) if places else 0.0


def _node(number: int, group: Group, place: tuple[int, int]) -> str:
    x, y = place
    states = group.states()
    worst = next(iter(states), State.PENDING)
    words = ", ".join(f"{count} {state}" for state, count in states.items())
    label = clean(group.label)
    short = label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…"
    what = f'data-job="{group.jobs[0].id}"' if len(group.jobs) == 1 else f'data-group="{number}"'
    said = worst.value if len(group.jobs) == 1 else _counts(states)
    parts = [
        f'<g class="node s-{worst}" {what} tabindex="0" role="button">',
        f"<title>{escape(label)}: {words or 'no jobs'}</title>",
        f'<rect class="box" x="{x}" y="{y}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="7"/>',
        f'<text x="{x + 10}" y="{y + 18}">{escape(short)}</text>',
        f'<text class="small" x="{x + 10}" y="{y + 33}">{escape(said)}</text>',
    ]
    left = float(x + 7)
    for state, part in _shares(states, NODE_WIDTH - 14):
        parts.append(
            f'<rect class="part s-{state}" x="{left:.1f}" y="{y + NODE_HEIGHT - 7}" width="{part:.1f}" height="4"/>'
        )
        left += part
    return "".join([*parts, "</g>"])


def _shares(states: Mapping[State, int], width: float) -> list[tuple[State, float]]:
    """Each state's part of the width; what is there is seen, however little it is."""
    total = sum(states.values())
    parts = {state: max(width * count / total, _THINNEST) for state, count in states.items()}
    if parts:
        widest = max(parts, key=lambda state: parts[state])
        parts[widest] -= sum(parts.values()) - width
    return list(parts.items())


def _counts(states: Mapping[State, int]) -> str:
    """`3 FAILED, 97 COMPLETED`, as far as it fits."""
    words = [f"{count} {state}" for state, count in states.items()]
    text = ", ".join(words[:2]) + (" …" if len(words) > 2 else "")
    return text if len(text) <= 24 else words[0] + (" …" if len(words) > 1 else "")
