"""The list of keys, the reader, the schema and the page are in step."""

from __future__ import annotations

import json
from pathlib import Path

from aver.spec.flow import job
from aver.spec.flow.keys import FLOW_KEYS, JOB_KEYS
from aver.spec.flow.schema import flow_schema, schema_text

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_schema_in_the_docs_is_current() -> None:
    """`python -m aver.spec.flow.schema > docs/flow.schema.json` writes it anew."""
    assert (DOCS / "flow.schema.json").read_text(encoding="utf-8") == schema_text()


def test_every_key_has_a_reader() -> None:
    """And every reader a key."""
    assert set(job._READERS) | {"needs", "matrix"} == set(JOB_KEYS)


def test_the_schema_knows_every_key() -> None:
    """Of flows and of jobs."""
    schema = flow_schema()
    assert set(schema["properties"]) == set(FLOW_KEYS)
    assert set(schema["$defs"]["job"]["properties"]) == set(JOB_KEYS)


def test_references_of_the_schema_resolve() -> None:
    """Each $ref names a definition."""
    schema = flow_schema()
    named = set(json.dumps(schema).split('"#/$defs/')[1:])
    assert {text.partition('"')[0] for text in named} <= set(schema["$defs"])


def test_the_page_names_every_key() -> None:
    """Each key stands in a table of docs/en/reference/flow-format.md."""
    rows = [
        line
        for line in (DOCS / "en" / "reference" / "flow-format.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    first_cells = " ".join(row.split("|")[1] for row in rows)
    assert [key for key in [*FLOW_KEYS, *JOB_KEYS] if f"`{key}`" not in first_cells] == []
