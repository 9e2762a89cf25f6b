"""A flow as a picture's nodes and edges: jobs in layers, each job right of all that it needs.

Pure. A matrix is one node. A flow with more jobs than a picture can show is grouped: first jobs
of one layer whose names differ only in their digits, then whole layers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from aver.model.job import Condition, FlowSpec, JobSpec, Need, Outcome
from aver.model.record import Record, replace
from aver.plan.graph import Graph
from aver.plan.lanes import Link
from aver.plan.matrix import member_count
from aver.plan.needs import Target
from aver.plan.placeholders import names_in

MOST_NODES = 150


class Note(StrEnum):
    """What is special about a job, in the words of a picture."""

    ALWAYS = "if always"
    FAILURE = "if failure"
    BACKGROUND = "background"
    GENERATES = "generates"
    HELD = "held"


class Node(Record):
    label: str  # `train ×3`
    layer: int
    notes: tuple[Note, ...] = ()
    jobs: int = 1  # how many jobs of the flow it stands for
    specs: tuple[int, ...] = ()  # which: their numbers in the flow


class Edge(Record):
    source: int
    target: int
    outcome: str = ""  # `failure`; empty: success
    lane: str = ""  # `per sample`, where each member needs members of its own; empty: all members
    is_alternative: bool = False

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.outcome, self.lane)))


class Picture(Record):
    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    is_grouped: bool = False


def picture(flow: FlowSpec, most: int = MOST_NODES) -> Picture:
    """The flow's nodes and edges, grouped if there are more than `most`. Its needs must have been checked."""
    edges = _edges(flow)
    layers = _layers(len(flow.jobs), edges)
    nodes = tuple(
        [
            Node(_label(spec), layer, _notes(spec), 1, (number,))
            for number, (spec, layer) in enumerate(zip(flow.jobs, layers, strict=True))
        ]
    )
    whole = Picture(flow.name, nodes, tuple(edges))
    if len(nodes) <= most and len(edges) <= 20 * most:
        return whole
    by_name = _grouped(whole, [(node.layer, _stem(node.label)) for node in nodes])
    if len(by_name.nodes) <= most:
        return by_name
    return _grouped(whole, [(node.layer, f"layer {node.layer + 1}") for node in nodes])


def overview(flow: FlowSpec, most: int) -> Picture:
    """The same with no more than `most` nodes, or hardly more: of a long chain, several layers are one node."""
    shown = picture(flow, most)
    if len(shown.nodes) <= most:
        return shown
    depth = max(node.layer for node in shown.nodes) + 1
    each = -(-depth // most)

    def band(layer: int) -> str:
        return f"layers {layer // each * each + 1} to {min(depth, (layer // each + 1) * each)}"

    return _grouped(shown, [(node.layer // each, band(node.layer)) for node in shown.nodes])


def _notes(spec: JobSpec) -> tuple[Note, ...]:
    has = {
        Note.ALWAYS: spec.condition is Condition.ALWAYS,
        Note.FAILURE: spec.condition is Condition.FAILURE,
        Note.BACKGROUND: spec.background,
        Note.GENERATES: spec.generates is not None,
        Note.HELD: spec.hold,
    }
    return tuple(note for note, is_so in has.items() if is_so)


def _label(spec: JobSpec) -> str:
    return spec.name if spec.matrix is None else f"{spec.name} ×{member_count(spec)}"


def _edges(flow: FlowSpec) -> list[Edge]:
    graph = Graph(flow)
    edges: dict[tuple[int, int], Edge] = {}
    for target, spec in enumerate(flow.jobs):
        for (need, is_alternative), means in zip(_needs_of(spec), graph.groups[target].targets, strict=True):
            for source in graph.specs_in(means):
                edges[source, target] = Edge(source, target, _outcome(need), _lane(means), is_alternative)
    return list(edges.values())


def _lane(means: Target | Link) -> str:
    return f"per {', '.join(sorted(names_in(means.text)))}" if isinstance(means, Link) else ""


def _needs_of(spec: JobSpec) -> list[tuple[Need, bool]]:
    return [(need, False) for need in spec.needs.all_of] + [
        (need, True) for group in spec.needs.any_of for need in group
    ]


def _outcome(need: Need) -> str:
    if need.states:
        return " or ".join(need.states)
    return "" if need.outcome is Outcome.SUCCESS else need.outcome.value


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    below: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for edge in edges:
        below[edge.source].append(edge.target)
        missing[edge.target] += 1
    layers = [0] * count
    ready = [number for number in range(count) if not missing[number]]
    for number in ready:  # grows while it is walked
        for lower in below[number]:
            layers[lower] = max(layers[lower], layers[number] + 1)
            missing[lower] -= 1
            if not missing[lower]:
                ready.append(lower)
    return layers


def _stem(label: str) -> str:
    return re.sub(r"[0-9]+", "*", label.partition(" ×")[0])


def _grouped(whole: Picture, keys: list[tuple[int, str]]) -> Picture:
    numbers: dict[tuple[int, str], int] = {}
    parts: list[list[Node]] = []
    for key, node in zip(keys, whole.nodes, strict=True):
        if key not in numbers:
            numbers[key] = len(parts)
            parts.append([])
        parts[numbers[key]].append(node)
    nodes = tuple([_group(key, members) for key, members in zip(numbers, parts, strict=True)])
    group_of = [numbers[key] for key in keys]
    pairs = dict.fromkeys(
        (group_of[edge.source], group_of[edge.target])
        for edge in whole.edges
        if group_of[edge.source] != group_of[edge.target]
    )
    return Picture(whole.title, nodes, tuple([Edge(source, target) for source, target in pairs]), is_grouped=True)


def _group(key: tuple[int, str], members: list[Node]) -> Node:
    layer, name = key
    if len(members) == 1:
        return replace(members[0], layer=layer)
    specs = tuple(number for member in members for number in member.specs)
    jobs = sum(member.jobs for member in members)
    return Node(f"{name} ({jobs} jobs)", layer, (), jobs, specs)
