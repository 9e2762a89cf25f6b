"""A command's answer as one JSON document, with stable keys. `docs/en/reference/json.md` describes them.

Secrets are masked in each text before it is encoded, so that no escape can hide a value. Bytes
that are not UTF-8 are written as the replacement character: JSON has no other way to say them.
"""

from __future__ import annotations

import json

from aver.cli.output.documents import Document
from aver.client.documents import exit_facts
from aver.model.exit import ExitStatus
from aver.model.record import Record
from aver.render.masking import Masking, to_bytes

KINDS = {
    "JobList": "jobs",
    "RunList": "runs",
    "JobShown": "job",
    "StepShown": "step",
    "RunShown": "run",
    "Explained": "why",
    "SubmittedFacts": "submitted",
    "Planned": "planned",
    "Preview": "preview",
    "Ended": "ended",
    "Acted": "acted",
    "LogText": "log",
    "CoordinatorFacts": "coordinator",
    "Diagnosis": "doctor",
    "Timeline": "timeline",
    "Written": "written",
    "Pruned": "pruned",
    "AccountList": "accounts",
    "PoolList": "pools",
    "SettingList": "settings",
    "ResultList": "results",
    "CauseList": "causes",
    "UsageList": "usage",
    "Corrected": "corrected",
    "Recovered": "recovered",
    "EventFacts": "event",
    "Digest": "failures",
}

LARGE = 10_000  # a list of more than this makes a document of one line, which is written five times as fast
_NAMES: dict[type, tuple[str, ...]] = {}  # of each class that was written, which is done once


def encode(document: Document, masking: Masking = Masking()) -> str:
    """Return the document as JSON text; its first key, `kind`, names its shape."""
    plain = {"kind": KINDS[type(document).__name__], **_fields(document, masking)}
    is_large = any(isinstance(part, list) and len(part) > LARGE for part in plain.values())
    return json.dumps(plain, indent=None if is_large else 2, ensure_ascii=False)


def plain(document: Record, masking: Masking = Masking()) -> dict[str, object]:
    """Return the document as dicts, lists, texts and numbers, masked."""
    return _fields(document, masking)


def encode_line(document: Record, masking: Masking = Masking()) -> str:
    """Return the document as one line of JSON, for a stream of documents."""
    plain = {"kind": KINDS[type(document).__name__], **_fields(document, masking)}
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def _fields(value: object, masking: Masking) -> dict[str, object]:
    names = _NAMES.get(type(value))
    if names is None:
        assert isinstance(value, Record)
        names = _NAMES[type(value)] = value.__struct_fields__
    return {name: _plain(getattr(value, name), masking) for name in names}


def _plain(value: object, masking: Masking) -> object:
    if isinstance(value, str):
        if not masking and value.isascii():
            return value
        return to_bytes(masking.whole(value)).decode("utf-8", "replace")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, tuple):
        return [_plain(item, masking) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, masking) for key, item in value.items()}
    return _fields(exit_facts(value) if isinstance(value, ExitStatus) else value, masking)
