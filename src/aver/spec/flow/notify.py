"""`notify:` of a flow: whom to tell of which verdicts."""

from __future__ import annotations

from aver.model.job import NotifyOn, NotifyRule
from aver.model.notify_target import KINDS, parse_target, target_text
from aver.spec.document import Entry, Mapping, Scalar, Sequence
from aver.spec.values import Reader

KEYS = ("on", "run", *KINDS, "timeout", "attempts")
SHELL = ("/bin/sh", "-c")
MOST_ATTEMPTS = 100


def read_notify(entry: Entry, reader: Reader) -> tuple[NotifyRule, ...]:
    """A receiver or a map, or a list of these; each map may be for several occasions."""
    values = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    found: list[NotifyRule] = []
    for value in values:
        if isinstance(value, Scalar):
            target = _read_target(Entry(entry.key, value), str(value.value), reader)
            found += [] if target is None else [NotifyRule(NotifyOn.SETTLED, (), to=target)]
            continue
        mapping = reader.mapping(Entry(entry.key, value))
        if mapping is not None:
            found += _read_rules(entry, mapping, Reader(reader.mistakes, "notify", reader.now))
    return tuple(found)


def _read_rules(entry: Entry, mapping: Mapping, reader: Reader) -> list[NotifyRule]:
    parts = reader.parts(mapping, KEYS)
    named = [key for key in ("run", *KINDS) if key in parts]
    if len(named) != 1:
        hint = "write it as notify: {on: failed, run: COMMAND} or notify: {on: failed, mail: me@example.org}"
        reader.mistakes.add(mapping, f'"notify" needs one of run, {", ".join(KINDS)}', hint)
        return []
    given = parts[named[0]]
    words: tuple[str, ...] | None = ()
    target: str | None = ""
    if named != ["run"]:
        value = given.value.value if isinstance(given.value, Scalar) else None
        target = _read_target(given, target_text(named[0], value), reader)
    elif isinstance(given.value, Sequence):
        words = reader.texts(given)
    else:
        text = reader.filled(given)
        words = None if text is None else (*SHELL, text)
    occasions = _occasions(parts["on"], reader) if "on" in parts else [NotifyOn.SETTLED]
    timeout_s = reader.duration(parts["timeout"]) if "timeout" in parts else 30
    attempts = reader.integer(parts["attempts"], 1, MOST_ATTEMPTS) if "attempts" in parts else 5
    if not (words or target) or timeout_s is None or attempts is None:
        return []
    return [NotifyRule(on, words or (), float(timeout_s), attempts, target or "") for on in occasions]


def _read_target(entry: Entry, text: str, reader: Reader) -> str | None:
    try:
        return parse_target(text)
    except ValueError as error:
        reader.wrong(entry, f"is wrong: {error}")
        return None


def _occasions(entry: Entry, reader: Reader) -> list[NotifyOn]:
    values = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    words = [reader.word(Entry(entry.key, value), [on.value for on in NotifyOn]) for value in values]
    return [NotifyOn(word) for word in words if word in tuple(NotifyOn)]
