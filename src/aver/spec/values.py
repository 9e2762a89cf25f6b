"""Single values of a flow: text, numbers, times, sizes, words.

Each reader returns the value, or None after noting the mistake at the value's own place.
Bare numbers mean what they mean in Slurm: times are minutes, sizes MiB.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from aver.model.units import parse_size, parse_time
from aver.spec.document import Entry, Mapping, Scalar, Sequence, Value
from aver.spec.files import Files
from aver.spec.mistakes import Mistakes, did_you_mean, shown

MAX_COUNT = 1_000_000
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


class Reader:
    """Reads the values of one part of a file, `where`: a job, the defaults, the flow."""

    __slots__ = ("files", "mistakes", "now", "where")

    def __init__(self, mistakes: Mistakes, where: str, now: float, files: Files | None = None) -> None:
        self.mistakes = mistakes
        self.where = where
        self.now = now
        self.files = files  # None: no files are looked up

    def wrong(self, entry: Entry, text: str, hint: str = "") -> None:
        """Note that the entry's value is wrong: `"key" in job "x" TEXT`."""
        self.mistakes.add(entry.value, f"{shown(entry.key.text)} in {self.where} {text}", hint)

    def unknown_key(self, key: Scalar, known: Collection[str], foreign: dict[str, str] | None = None) -> None:
        instead = (foreign or {}).get(key.text.lower().replace("_", "-"))
        hint = f'did you mean "{instead}"?' if instead else did_you_mean(key.text, known)
        self.mistakes.add(key, f"unknown key {shown(key.text)} in {self.where}", hint)

    def parts(
        self, mapping: Mapping, known: Collection[str], foreign: dict[str, str] | None = None
    ) -> dict[str, Entry]:
        """The entries of a map that may have these keys; each other key is a mistake."""
        for key, part in mapping.entries.items():
            if key not in known:
                self.unknown_key(part.key, known, foreign)
        return mapping.entries

    def mapping(self, entry: Entry) -> Mapping | None:
        if isinstance(entry.value, Mapping):
            return entry.value
        self.wrong(entry, f"must be a map, not {kind(entry.value)}")
        return None

    def text(self, entry: Entry) -> str | None:
        return self.text_of(entry, entry.value)

    def text_of(self, entry: Entry, value: Value) -> str | None:
        """The text of one value of the entry: numbers and words as they were written."""
        if not isinstance(value, Scalar):
            self.wrong(Entry(entry.key, value), f"must be text, not {kind(value)}")
            return None
        if value.value is None:
            self.wrong(Entry(entry.key, value), "has no value", 'write "" for empty text')
            return None
        if _NOT_TEXT.search(value.text):
            self.wrong(Entry(entry.key, value), "has a NUL or half a character in it")
            return None
        return value.text

    def filled(self, entry: Entry) -> str | None:
        """Text that is not empty."""
        text = self.text(entry)
        if text is not None and not text.strip():
            self.wrong(entry, "is empty")
            return None
        return text

    def texts(self, entry: Entry) -> tuple[str, ...] | None:
        """A text or a list of texts, none of them empty."""
        values = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        found = [self.filled(Entry(entry.key, value)) for value in values]
        known = tuple(text for text in found if text is not None)
        return known if len(known) == len(found) else None

    def integer(self, entry: Entry, low: int, high: int = MAX_COUNT) -> int | None:
        value = entry.value.value if isinstance(entry.value, Scalar) else None
        if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]{1,18}", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(entry, f"must be a whole number, not {kind(entry.value)}")
            return None
        if value < low:
            self.wrong(entry, f"is {shown_number(value)}; the least is {low}")
            return None
        if value > high:
            self.wrong(entry, f"is {shown_number(value)}; the most is {high}")
            return None
        return value

    def boolean(self, entry: Entry) -> bool | None:
        value = entry.value.value if isinstance(entry.value, Scalar) else None
        if isinstance(value, bool):
            return value
        hint = "YAML 1.2 knows only true and false" if str(value).lower() in ("yes", "no", "on", "off") else ""
        self.wrong(entry, f"must be true or false, not {kind(entry.value)}", hint)
        return None

    def word(self, entry: Entry, known: Collection[str]) -> str | None:
        text = self.text(entry)
        if text is None or text in known:
            return text
        self.wrong(entry, f"is {shown(text)}; it is one of {', '.join(known)}", did_you_mean(text, known))
        return None

    def time(self, entry: Entry) -> int | None:
        """Seconds of a time limit; None also for UNLIMITED."""
        text = self.text(entry)
        if text is None:
            return None
        try:
            return parse_time(text)
        except ValueError as error:
            self.wrong(entry, f"is wrong: {error}")
            return None

    def duration(self, entry: Entry) -> int | None:
        """Seconds of a short wait, which says its unit: Slurm has no rule for a bare number here."""
        text = self.text(entry)
        if text is None:
            return None
        if re.fullmatch("0*[1-9][0-9]*", text):
            self.wrong(entry, f"is {shown(text)}, which has no unit", f"write it as {text}s or {text}m")
            return None
        try:
            return parse_time(text) or 0
        except ValueError as error:
            self.wrong(entry, f"is wrong: {error}")
            return None

    def size(self, entry: Entry) -> int | None:
        """Bytes of a memory limit."""
        text = self.text(entry)
        if text is None:
            return None
        try:
            return parse_size(text)
        except ValueError as error:
            self.wrong(entry, f"is wrong: {error}")
            return None


def kind(value: Value) -> str:
    """What a value is, for messages."""
    match value:
        case Mapping():
            return "a map"
        case Sequence():
            return "a list"
        case Scalar(value=None):
            return "nothing"
        case Scalar():
            return shown(value.text)


def shown_number(number: int) -> str:
    text = str(number)
    return text if len(text) <= 20 else f"{text[:17]}..."
