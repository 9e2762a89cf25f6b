"""A command's answer as one JSON document, with stable keys. `docs/json.md` describes them.

Secrets are masked in each text before it is encoded, so that no escape can hide a value. Bytes
that are not UTF-8 are written as the replacement character: JSON has no other way to say them.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass

from aver.cli.output.documents import Document
from aver.cli.output.masking import Masking, to_bytes

KINDS = {
    "JobList": "jobs",
    "RunList": "runs",
    "JobShown": "job",
    "StepShown": "step",
    "RunShown": "run",
    "Explained": "why",
    "SubmittedFacts": "submitted",
    "Ended": "ended",
    "Acted": "acted",
    "LogText": "log",
    "CoordinatorFacts": "coordinator",
    "Diagnosis": "doctor",
}


def encode(document: Document, masking: Masking = Masking()) -> str:
    """Return the document as JSON text; its first key, `kind`, names its shape."""
    plain = {"kind": KINDS[type(document).__name__], **_fields(document, masking)}
    return json.dumps(plain, indent=2, ensure_ascii=False)


def _fields(value: object, masking: Masking) -> dict[str, object]:
    assert is_dataclass(value)
    return {field.name: _plain(getattr(value, field.name), masking) for field in fields(value)}


def _plain(value: object, masking: Masking) -> object:
    if isinstance(value, str):
        return to_bytes(masking.whole(value)).decode("utf-8", "replace")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, tuple):
        return [_plain(item, masking) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, masking) for key, item in value.items()}
    return _fields(value, masking)
