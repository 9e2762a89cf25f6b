"""`notify:` of a flow: whom to tell of which verdicts."""

from __future__ import annotations

from aver.model.job import NotifyOn, NotifyRule
from aver.spec.document import Entry, Mapping, Sequence
from aver.spec.values import Reader

KEYS = ("on", "run", "timeout", "attempts")
SHELL = ("/bin/sh", "-c")
MOST_ATTEMPTS = 100


def read_notify(entry: Entry, reader: Reader) -> tuple[NotifyRule, ...]:
    """One map or a list of maps; each may be for several occasions."""
    values = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    found: list[NotifyRule] = []
    for value in values:
        mapping = reader.mapping(Entry(entry.key, value))
        if mapping is not None:
            found += _read_rules(entry, mapping, Reader(reader.mistakes, "notify", reader.now))
    return tuple(found)


def _read_rules(entry: Entry, mapping: Mapping, reader: Reader) -> list[NotifyRule]:
    parts = mapping.entries
    for key, one in parts.items():
        if key not in KEYS:
            reader.unknown_key(one.key, KEYS)
    if "run" not in parts:
        reader.mistakes.add(mapping, '"notify" has no "run"', "write it as notify: {on: failed, run: COMMAND}")
        return []
    run = parts["run"]
    if isinstance(run.value, Sequence):
        words = reader.texts(run)
    else:
        text = reader.filled(run)
        words = None if text is None else (*SHELL, text)
    occasions = _occasions(parts["on"], reader) if "on" in parts else [NotifyOn.SETTLED]
    timeout_s = reader.duration(parts["timeout"]) if "timeout" in parts else 30
    attempts = reader.integer(parts["attempts"], 1, MOST_ATTEMPTS) if "attempts" in parts else 5
    if not words or timeout_s is None or attempts is None:
        return []
    return [NotifyRule(on, words, float(timeout_s), attempts) for on in occasions]


def _occasions(entry: Entry, reader: Reader) -> list[NotifyOn]:
    values = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    words = [reader.word(Entry(entry.key, value), [on.value for on in NotifyOn]) for value in values]
    return [NotifyOn(word) for word in words if word in tuple(NotifyOn)]
