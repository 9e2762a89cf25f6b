"""The JSON Schema of the flow format, for editors. `python -m aver.spec.flow.schema` writes it to standard output.

It follows `spec.flow.keys`; a test holds `docs/flow.schema.json` to it. It is looser than the reader:
what it accepts may still have mistakes, what it refuses is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from aver.config import SHIPPED_ENGINES, engine_names
from aver.model.job import NotifyOn, Outcome
from aver.model.notify_target import KINDS
from aver.model.states import SETTLED
from aver.plan.address import SAME
from aver.spec.container_command import ENGINES
from aver.spec.flow.keys import AMOUNT, COUNT, DEFAULTS_KEYS, FLAG, FLOW_KEYS, JOB_KEYS, NAME, TEXT, TEXTS, Key, Schema
from aver.spec.flow.lists import LISTS
from aver.spec.flow.needs import GROUPS

JOB_NAME_PATTERN = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$"


def flow_schema(engines: Sequence[str] = SHIPPED_ENGINES) -> Schema:
    """The whole schema as a JSON value, with the names of these engines."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Aver flow",
        "type": "object",
        "anyOf": [{"required": ["jobs"]}, {"required": ["include"]}],
        "properties": _properties(FLOW_KEYS),
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "$defs": {
            "jobs": _jobs(),
            "job": _object(JOB_KEYS, required=["run"]),
            "defaults": _object(DEFAULTS_KEYS),
            "engine": {"enum": [*engines]},
            "needs": _needs(),
            "matrix": _matrix(),
            "axes": {"type": "object", "additionalProperties": _axis()},
            "inputs": _files({}),
            "outputs": _files({"clean": FLAG}),
            "container": {"anyOf": [TEXT, _container()]},
            "pools": {"anyOf": [*TEXTS["anyOf"], {"type": "object", "additionalProperties": COUNT}]},
            "retry": _retry(),
            "notify": _notify(),
            "checkpoint": {"anyOf": [FLAG, _closed({"codes": _several({"type": "integer"}), "rounds": COUNT})]},
        },
    }


def schema_text(engines: Sequence[str] = SHIPPED_ENGINES) -> str:
    """The schema as it stands in docs/flow.schema.json."""
    return json.dumps(flow_schema(engines), indent=2, ensure_ascii=False) + "\n"


def _properties(keys: dict[str, Key]) -> Schema:
    return {name: {**key.schema, "description": key.words} for name, key in keys.items()}


def _object(keys: dict[str, Key], required: list[str] | None = None) -> Schema:
    made: Schema = {"type": "object", "properties": _properties(keys), "additionalProperties": False}
    return made | {"required": required} if required else made


def _closed(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _several(one: Schema) -> Schema:
    return {"anyOf": [one, {"type": "array", "items": one}]}


def _jobs() -> Schema:
    by_name: Schema = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": JOB_NAME_PATTERN},
        "additionalProperties": {"$ref": "#/$defs/job"},
    }
    named = _object(JOB_KEYS, required=["name", "run"])
    named["properties"] = {"name": {"type": "string", "pattern": JOB_NAME_PATTERN}, **named["properties"]}
    return {"anyOf": [by_name, {"type": "array", "minItems": 1, "items": named}]}


def _needs() -> Schema:
    states = sorted(state.value for state in SETTLED)
    edge: Schema = {"anyOf": [{"enum": [*(outcome.value for outcome in Outcome), SAME, *states]}]}
    edge["anyOf"].append({"type": "array", "minItems": 1, "items": {"enum": states}})
    edges: Schema = {"type": "object", "additionalProperties": edge}
    several: Schema = {"anyOf": [NAME, edges, {"type": "array", "items": {"anyOf": [NAME, edges]}}]}
    groups: Schema = {"anyOf": [several, {"type": "array", "items": several}]}
    by_name: Schema = {
        "type": "object",
        "properties": dict.fromkeys(GROUPS, groups),
        "additionalProperties": edge,
    }
    return {"anyOf": [NAME, {"type": "array", "items": {"anyOf": [NAME, edges]}}, by_name]}


def _axis() -> Schema:
    steps = {name: {"type": "integer"} for name in ("from", "to", "step")}
    lists = _closed({name: _several(NAME) for name in LISTS})
    return {"anyOf": [NAME, {"type": "array", "minItems": 1, "items": NAME}, _closed(steps), lists]}


def _matrix() -> Schema:
    axis: Schema = {"anyOf": [*_axis()["anyOf"], {"type": "null"}]}
    rows: Schema = {"type": "array", "items": {"type": "object", "additionalProperties": NAME}}
    by_axis: Schema = {
        "type": "object",
        "properties": {"zip": FLAG, "include": rows, "exclude": rows, "max_parallel": COUNT, "csv": TEXT},
        "additionalProperties": axis,
    }
    return {"anyOf": [by_axis, {"type": "array", "minItems": 1, "items": TEXT}]}


def _files(more: Schema) -> Schema:
    some = _closed({"files": _several(TEXT), "required": FLAG}) | {"required": ["files"]}
    several: Schema = {"anyOf": [TEXT, {"type": "array", "items": {"anyOf": [TEXT, some]}}]}
    whole = _closed({"files": several, "required": FLAG, **more}) | {"required": ["files"]}
    return {"anyOf": [*several["anyOf"], whole]}


def _container() -> Schema:
    engine: Schema = {"enum": [*ENGINES]}
    return _closed({"image": TEXT, "engine": engine, "mounts": TEXTS, "options": TEXTS}) | {"required": ["image"]}


def _notify() -> Schema:
    run: Schema = {"anyOf": [TEXT, {"type": "array", "minItems": 1, "items": TEXT}]}
    when = _several({"enum": [on.value for on in NotifyOn]})
    receivers: dict[str, Schema] = {kind: FLAG if kind == "desktop" else TEXT for kind in KINDS}
    rule = _closed({"on": when, "run": run, **receivers, "timeout": AMOUNT, "attempts": COUNT})
    return _several({"anyOf": [TEXT, rule]})


def _retry() -> Schema:
    word: Schema = {"anyOf": [TEXT, _closed({"exit": NAME, "signal": NAME})]}
    return {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {
                **_closed(
                    {
                        "max": {"type": "integer", "minimum": 0},
                        "on": _several(word),
                        "grow": {"anyOf": [AMOUNT, _closed({"mem": AMOUNT, "time": AMOUNT})]},
                        "ceiling": _closed({"mem": AMOUNT, "time": AMOUNT}),
                        "backoff": {"anyOf": [AMOUNT, _closed({"first": AMOUNT, "factor": AMOUNT})]},
                    }
                ),
                "required": ["max"],
            },
        ]
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text(engine_names()))
