"""A flow drawn as a text tree, as DOT and as SVG.

Pure, and no other program is needed. Names are escaped for each format. Each node is drawn
once: in the tree under the need that is deepest, with its other needs named beside it.
"""

from __future__ import annotations

import json
from html import escape

from aver.model.job import FlowSpec
from aver.report.graph.layers import Edge, Note, Picture, picture

DEEPEST = 30  # the tree goes no further to the right

_CHAR, _BOX, _GAP_X, _GAP_Y, _MARGIN, _LONGEST = 7.4, 34, 64, 18, 24, 40

_STYLE = """
  .node rect { fill: #ffffff; stroke: #57606a; stroke-width: 1.2; }
  .node.background rect { stroke-dasharray: 5 3; }
  .node.always rect { stroke: #8250df; }
  .node.failure rect { stroke: #cf222e; }
  text { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; fill: #1f2328; }
  text.label { font-size: 11px; fill: #57606a; }
  path { fill: none; stroke: #8c959f; stroke-width: 1.3; }
  path.alternative { stroke-dasharray: 4 3; }
  marker path { fill: #8c959f; stroke: none; }
  @media (prefers-color-scheme: dark) {
    .node rect { fill: #161b22; stroke: #8b949e; }
    text { fill: #e6edf3; } text.label { fill: #8b949e; }
    path { stroke: #6e7681; } marker path { fill: #6e7681; }
  }
""".strip("\n")


def draw_text(flow: FlowSpec) -> str:
    """A tree of the jobs, one line each, with a newline at the end of each."""
    shown = picture(flow)
    needs: list[list[int]] = [[] for _ in shown.nodes]
    for edge in shown.edges:
        needs[edge.target].append(edge.source)
    edges = {(edge.source, edge.target): edge for edge in shown.edges}
    children: list[list[int]] = [[] for _ in shown.nodes]
    roots: list[int] = []
    for number, above in enumerate(needs):
        if above:
            parent = max(above, key=lambda source: (shown.nodes[source].layer, -source))
            children[parent].append(number)
        else:
            roots.append(number)
    lines = [shown.title]
    stack = [(root, 0, (), root == roots[-1], -1) for root in reversed(roots)]
    todo: list[tuple[int, int, tuple[bool, ...], bool, int]] = list(stack)
    while todo:
        number, depth, bars, is_last, parent = todo.pop()
        lead = "".join("   " if ended else "│  " for ended in bars)
        line = f"{lead}{'└─ ' if is_last else '├─ '}{_line(shown, number, parent, needs[number], edges)}"
        lines.append(line)
        below = children[number]
        inner = (*bars, is_last) if depth < DEEPEST else bars
        for child in reversed(below):
            todo.append((child, depth + 1, inner, child == below[-1], number))
    return "\n".join(lines) + "\n"


def _line(shown: Picture, number: int, parent: int, needs: list[int], edges: dict[tuple[int, int], Edge]) -> str:
    node = shown.nodes[number]
    notes: list[str] = list(node.notes)
    edge = edges.get((parent, number))
    if edge is not None and edge.label:
        notes.insert(0, f"after {edge.label}" if edge.outcome else edge.label)
    others = [source for source in needs if source != parent]
    if others:
        names = [shown.nodes[source].label for source in others[:3]]
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        notes.append(f"also needs {', '.join(names)}{more}")
    return f"{node.label}  ({'; '.join(notes)})" if notes else node.label


def draw_dot(flow: FlowSpec) -> str:
    """The flow for Graphviz."""
    shown = picture(flow)
    lines = [f"digraph {_quoted(shown.title)} {{", "  rankdir=LR;", '  node [shape=box, style="rounded"];']
    for number, node in enumerate(shown.nodes):
        text = "\n".join([node.label, *(f"({note})" for note in node.notes)])
        style = ', style="rounded,dashed"' if Note.BACKGROUND in node.notes else ""
        lines.append(f"  n{number} [label={_quoted(text)}{style}];")
    for edge in shown.edges:
        parts = [f"label={_quoted(edge.label)}"] if edge.label else []
        parts += ["style=dashed"] if edge.is_alternative else []
        lines.append(f"  n{edge.source} -> n{edge.target}{' [' + ', '.join(parts) + ']' if parts else ''};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def draw_svg(flow: FlowSpec) -> str:
    """The flow as an SVG document: layers from left to right."""
    shown = picture(flow)
    columns = _columns(shown)
    place: dict[int, tuple[float, float, float]] = {}  # left, middle, width
    tallest = max(len(column) for column in columns)
    left = float(_MARGIN)
    for column in columns:
        width = max(_width(shown, number) for number in column)
        top = _MARGIN + (tallest - len(column)) * (_BOX + _GAP_Y) / 2
        for row, number in enumerate(column):
            place[number] = (left, top + row * (_BOX + _GAP_Y) + _BOX / 2, width)
        left += width + _GAP_X
    size = (left - _GAP_X + _MARGIN, tallest * (_BOX + _GAP_Y) - _GAP_Y + 2 * _MARGIN)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" '
        f'width="{size[0]:.0f}" height="{size[1]:.0f}" role="img">',
        f"<title>{_escaped(shown.title)}</title>",
        f"<style>\n{_STYLE}\n</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    lines += [_curve(shown, number, place) for number in range(len(shown.edges))]
    lines += [_box(shown, number, place[number]) for number in range(len(shown.nodes))]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _columns(shown: Picture) -> list[list[int]]:
    """Nodes by layer, each layer ordered by the middle of what its nodes need, so that few edges cross."""
    needs: list[list[int]] = [[] for _ in shown.nodes]
    for edge in shown.edges:
        needs[edge.target].append(edge.source)
    columns: list[list[int]] = [[] for _ in range(max(node.layer for node in shown.nodes) + 1)]
    for number, node in enumerate(shown.nodes):
        columns[node.layer].append(number)
    row: dict[int, float] = {}
    for column in columns:
        column.sort(key=lambda number: sum(row[one] for one in needs[number]) / max(len(needs[number]), 1))
        for position, number in enumerate(column):
            row[number] = position - len(column) / 2
    return [column for column in columns if column]


def _text(shown: Picture, number: int) -> str:
    node = shown.nodes[number]
    text = node.label if len(node.label) <= _LONGEST else f"{node.label[: _LONGEST - 1]}…"
    return f"{text} · {', '.join(node.notes)}" if node.notes else text


def _width(shown: Picture, number: int) -> float:
    return len(_text(shown, number)) * _CHAR + 28


def _box(shown: Picture, number: int, place: tuple[float, float, float]) -> str:
    left, middle, width = place
    node = shown.nodes[number]
    kinds = " ".join(["node", *(note.name.lower() for note in node.notes)])
    deck = ""
    if "×" in node.label or node.jobs > 1:  # several jobs: a second card behind the first
        deck = f'<rect x="{left + 4:.1f}" y="{middle - _BOX / 2 + 4:.1f}" width="{width:.1f}" height="{_BOX}" rx="7"/>'
    return (
        f'<g class="{kinds}"><title>{_escaped(node.label)}</title>{deck}'
        f'<rect x="{left:.1f}" y="{middle - _BOX / 2:.1f}" width="{width:.1f}" height="{_BOX}" rx="7"/>'
        f'<text x="{left + width / 2:.1f}" y="{middle + 4.5:.1f}" text-anchor="middle">'
        f"{_escaped(_text(shown, number))}</text></g>"
    )


def _curve(shown: Picture, number: int, place: dict[int, tuple[float, float, float]]) -> str:
    edge = shown.edges[number]
    from_x, from_y = place[edge.source][0] + place[edge.source][2], place[edge.source][1]
    to_x, to_y = place[edge.target][0] - 2, place[edge.target][1]
    bend = max((to_x - from_x) / 2, 24)
    kind = ' class="alternative"' if edge.is_alternative else ""
    curve = (
        f'<path{kind} d="M{from_x:.1f} {from_y:.1f} C{from_x + bend:.1f} {from_y:.1f} '
        f'{to_x - bend:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}" marker-end="url(#arrow)"/>'
    )
    if not edge.label:
        return curve
    x, y = (from_x + to_x) / 2, (from_y + to_y) / 2 - 6
    return f'{curve}<text class="label" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{_escaped(edge.label)}</text>'


def _escaped(text: str) -> str:
    """For XML; characters that XML can't have become a replacement character."""
    return escape("".join(c if c >= " " and not "\ud800" <= c <= "\udfff" else "\ufffd" for c in text), quote=True)
