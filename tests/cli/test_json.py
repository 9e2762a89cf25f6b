"""The JSON documents fit the schema in docs/json.schema.json, and the schema names every document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from stored_past import Aver

from aver.cli.output.documents import Acted, Done, Ended, SubmittedFacts
from aver.cli.output.json import KINDS, encode
from aver.client.documents import JobPreview, Preview
from aver.render.masking import Masking

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "json.schema.json").read_text())


def problems(value: object, schema: dict[str, Any], place: str = "$") -> list[str]:
    """What does not fit. Knows the few words of JSON Schema that our schema uses."""
    if "$ref" in schema:
        return problems(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], place)
    if "anyOf" in schema or "oneOf" in schema:
        tried = [problems(value, one, place) for one in schema.get("anyOf") or schema["oneOf"]]
        return [] if any(not found for found in tried) else min(tried, key=len)
    if "const" in schema:
        return [] if value == schema["const"] else [f"{place}: {value!r} is not {schema['const']!r}"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{place}: {value!r} is not in the list"]
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
        "null": (type(None),), "array": (list,), "object": (dict,),
    }  # fmt: skip
    kind = schema["type"]
    if not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return [f"{place}: {value!r} is no {kind}"]
    found: list[str] = []
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += problems(item, schema["items"], f"{place}[{number}]")
    if isinstance(value, dict):
        found += [f"{place}: {key} is missing" for key in schema.get("required", ()) if key not in value]
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", False))
            found += [f"{place}: {key} is unknown"] if inner is False else problems(item, inner, f"{place}.{key}")
    return found


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (("jobs",), "jobs"),
        (("jobs", "3"), "jobs"),
        (("runs",), "runs"),
        (("show", "2"), "job"),
        (("show", "3"), "run"),
        (("show", "6"), "job"),
        (("why", "2"), "why"),
        (("why", "6"), "why"),
        (("why", "3"), "causes"),
        (("failures", "3"), "failures"),
        (("results", "3"), "results"),
        (("results", "2", "--log"), "results"),
        (("usage", "3"), "usage"),
        (("usage", "2", "--correct", "--dry-run"), "corrected"),
        (("recover", "2", "--dry-run"), "recovered"),
        (("log", "1"), "log"),
        (("status",), "coordinator"),
        (("doctor",), "doctor"),
        (("timeline", "2"), "timeline"),
        (("config",), "settings"),
        (("pool", "list"), "pools"),
    ],
)
def test_real_answers_fit_the_schema(past: Path, call: Aver, args: tuple[str, ...], kind: str) -> None:
    """One document each, with exactly the keys of the schema."""
    document = call(*args, "--json").document
    assert document["kind"] == kind
    assert problems(document, SCHEMA) == []


@pytest.mark.parametrize(
    "document",
    [
        SubmittedFacts(7, 7, 1),
        Preview("flow", 1, "/", (JobPreview("a", 1, "true", (), "local", 1, 0, None, 60),), 0, (), ()),
        Acted("cancel", (Done(7, "cancelling"),)),
        Ended((), (), True, 0, ()),
    ],
)
def test_documents_of_the_coordinator_fit_the_schema(document: SubmittedFacts | Preview | Acted | Ended) -> None:
    """Those that need a coordinator have the schema's keys too."""
    assert problems(json.loads(encode(document)), SCHEMA) == []


def test_mistakes_fit_the_schema(tmp_path: Path, call: Aver) -> None:
    """A right file and a wrong one."""
    (tmp_path / "right.yaml").write_text("jobs: {a: {run: 'true'}}\n")
    (tmp_path / "wrong.yaml").write_text("jobs: {a: {rnu: 'true'}}\n")
    answer = call("check", str(tmp_path / "right.yaml"), str(tmp_path / "wrong.yaml"), "--json")
    assert answer.status == 2
    assert problems(answer.document, SCHEMA) == []


def test_the_schema_has_every_kind() -> None:
    """Each document is one of the schema's alternatives."""
    named = {SCHEMA["$defs"][one["$ref"].rsplit("/", 1)[1]]["properties"]["kind"]["const"] for one in SCHEMA["oneOf"]}
    assert named == {*KINDS.values(), "check"}


def test_the_validator_can_fail() -> None:
    """A document with a wrong, a missing and an unknown key has three problems."""
    found = problems({"kind": "submitted", "run": "7", "jobs": 1, "more": 0}, SCHEMA["$defs"]["SubmittedFacts"])
    assert len(found) == 3


def test_a_secret_is_masked_before_it_is_escaped() -> None:
    """A value with quotes and newlines can't slip through in its escaped form."""
    masked = encode(Acted("cancel", (Done(7, 'a "b\nc" d'),)), Masking([b'"b\nc"']))
    assert json.loads(masked)["results"][0]["did"] == "a *** d"


def test_bytes_that_are_not_utf8_become_the_replacement_character() -> None:
    """The document is always valid UTF-8."""
    text = encode(Acted("cancel", (Done(7, "x\udcff"),)))
    assert json.loads(text.encode())["results"][0]["did"] == "x\N{REPLACEMENT CHARACTER}"


def test_the_page_lists_the_keys_of_a_job() -> None:
    """The table of docs/en/reference/json.md has every key, and no other."""
    page = (Path(__file__).parents[2] / "docs" / "en" / "reference" / "json.md").read_text()
    part = page.partition("## A job\n")[2].partition("`aver show`")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", part, re.MULTILINE)
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == set(
        SCHEMA["$defs"]["JobFacts"]["properties"]
    )
