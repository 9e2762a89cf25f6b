"""Values written into the text of a flow, at their places; every other character stays as it is.

The text is composed by PyYAML, and edited by the positions of its nodes: nothing is loaded and dumped again, so
comments, order, quotes and line ends survive. What is shared (an anchor, an alias, a merged map) is left
alone and reported, since a change there would change other jobs. The caller parses the result again and compares
it with the flow that was meant, so that a wrong position can't go unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from aver.errors import UsageError
from aver.model.record import Record

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FIRST_CHOICES = ("mem", "time", "cpus", "gpus")  # beside these a new key is put, where one is there


class Left(Record):
    """A value that was not written, and why."""

    job: str
    key: str
    why: str


class Edited(Record):
    text: str
    left: tuple[Left, ...]


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


class _CantEdit(Exception):
    """One value can't be written; the text says why."""


def edit_flow(text: str, wanted: Mapping[str, Mapping[str, str]], is_json: bool = False) -> Edited:
    """The text with these values, by job and key. Raise UsageError if it is not a flow that can be edited."""
    body = text.removeprefix("\ufeff")
    root = _compose(body)
    jobs = _jobs_node(root)
    shared = _shared(root)
    places = _places(jobs)
    newline = "\r\n" if "\r\n" in body else "\n"
    edits: list[_Edit] = []
    left: list[Left] = []
    for job, values in wanted.items():
        new: list[tuple[str, str]] = []
        for key, value in values.items():
            try:
                node = _job_node(places, job, shared)
                found = _value_node(node, key)
                if found is None:
                    new.append((key, value))
                else:
                    edits.append(_replaced(body, found, value, shared))
            except _CantEdit as error:
                left.append(Left(job, key, str(error)))
        if new:
            edits.append(_inserted(body, newline, places[job], new, is_json))
    return Edited(text[: len(text) - len(body)] + _apply(body, edits), tuple(left))


def _compose(text: str) -> yaml.MappingNode:
    try:
        root = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"the flow can't be read: {str(error).splitlines()[0]}") from None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError("the flow can't be edited: it is not a map")
    return root


def _jobs_node(root: yaml.MappingNode) -> yaml.Node:
    for key, value in root.value:
        if key.value == "jobs":
            found: yaml.Node = value
            return found
    raise UsageError("the flow can't be edited: its jobs are not written in it")


def _shared(root: yaml.Node) -> frozenset[int]:
    """Find the nodes that are shared: reachable on more than one path."""
    seen: Counter[int] = Counter()
    left = [root]
    while left:
        node = left.pop()
        seen[id(node)] += 1
        if seen[id(node)] > 1:
            continue
        if isinstance(node, yaml.MappingNode):
            left += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value
    return frozenset(number for number, count in seen.items() if count > 1)


def _places(jobs: yaml.Node) -> dict[str, yaml.Node]:
    """The node of each job: a map by name, or a list of maps with a name."""
    if isinstance(jobs, yaml.MappingNode):
        return {str(key.value): value for key, value in jobs.value if isinstance(key, yaml.ScalarNode)}
    places: dict[str, yaml.Node] = {}
    for item in jobs.value if isinstance(jobs, yaml.SequenceNode) else ():
        named = _value_node(item, "name") if isinstance(item, yaml.MappingNode) else None
        if named is not None:
            places[str(named[1].value)] = item
    return places


def _job_node(places: Mapping[str, yaml.Node], job: str, shared: frozenset[int]) -> yaml.MappingNode:
    node = places.get(job)
    if not isinstance(node, yaml.MappingNode):
        raise _CantEdit("its definition is not written out in the file")
    if id(node) in shared:
        raise _CantEdit("its definition is an anchor that others share")
    if not node.value:
        raise _CantEdit("its definition is empty")
    return node


def _value_node(node: yaml.Node, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    for key_node, value_node in node.value:
        if isinstance(key_node, yaml.ScalarNode) and key_node.value == key:
            return key_node, value_node
    return None


def _replaced(text: str, found: tuple[yaml.Node, yaml.Node], value: str, shared: frozenset[int]) -> _Edit:
    key, node = found
    start, end = node.start_mark.index, node.end_mark.index
    if start < key.end_mark.index or id(node) in shared:
        raise _CantEdit("its value is an alias or an anchor, which others share")
    if not isinstance(node, yaml.ScalarNode) or node.style in ("|", ">") or text[start : start + 1] in "&!*":
        raise _CantEdit("its value is not written as one plain word")
    if "{" in node.value or "$" in node.value:
        raise _CantEdit("its value is an expression")
    quote = node.style if node.style in ("'", '"') else ""
    return _Edit(start, end, f"{quote}{value}{quote}")


def _inserted(text: str, newline: str, node: yaml.Node, new: list[tuple[str, str]], is_json: bool) -> _Edit:
    words = [f'"{key}": {_json(value)}' if is_json else f"{key}: {value}" for key, value in new]
    assert isinstance(node, yaml.MappingNode)
    if node.flow_style:
        key, last = node.value[-1]
        if last.start_mark.index < key.end_mark.index:  # an alias: its end is the anchor's
            at = node.value[0][0].start_mark.index
            return _Edit(at, at, "".join(f"{word}, " for word in words))
        at = last.end_mark.index
        return _Edit(at, at, "".join(f", {word}" for word in words))
    indent = " " * node.value[0][0].start_mark.column
    beside = _beside(node)
    if beside is None:  # every value has lines of its own: before the last key, whose comment stays above both
        at = node.value[-1][0].start_mark.index
        return _Edit(at, at, "".join(f"{word}{newline}{indent}" for word in words))
    end = text.find("\n", beside.end_mark.index)
    if end < 0:
        return _Edit(len(text), len(text), "".join(f"{newline}{indent}{word}" for word in words))
    return _Edit(end + 1, end + 1, "".join(f"{indent}{word}{newline}" for word in words))


def _beside(node: yaml.Node) -> yaml.Node | None:
    """The value after whose line a new key goes: it must begin and end on the line of its key."""
    one_line: list[tuple[str, yaml.Node]] = [
        (key.value, value)
        for key, value in node.value
        if key.start_mark.line == value.start_mark.line == value.end_mark.line
        and key.start_mark.index < value.start_mark.index  # no alias
        and not (isinstance(value, yaml.ScalarNode) and value.style in ("|", ">"))
    ]
    for wanted in FIRST_CHOICES:
        for key, value in one_line:
            if key == wanted:
                return value
    return one_line[-1][1] if one_line else None


def _json(value: str) -> str:
    return value if value.isdigit() else f'"{value}"'


def _apply(text: str, edits: list[_Edit]) -> str:
    parts = []
    at = 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
