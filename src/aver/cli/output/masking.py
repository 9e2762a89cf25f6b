"""Replace the values of secret names by `***` in everything that is shown.

A value may be cut by the border of two chunks, so a stream keeps back what may be a value's
beginning until more comes or the stream ends. Empty values are no secrets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import overload

MASK = b"***"


def to_bytes(text: str) -> bytes:
    """The bytes that a text stands for; those that were not UTF-8 become again what they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        return text.encode("utf-8", "backslashreplace")


class Masking:
    """The values to hide. Without any, everything passes as it is."""

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        whole = {value for value in values if value}
        # A value of several lines is often shown one line at a time.
        lines = {line for value in whole for line in value.splitlines() if len(line) >= 4}
        self._values = tuple(sorted(whole | lines, key=lambda value: (-len(value), value)))
        self._pattern = re.compile(b"|".join(map(re.escape, self._values))) if self._values else None

    @classmethod
    def of_environment(cls, env: Iterable[bytes], names: Iterable[str]) -> Masking:
        """Take the values of `names` from a list of NAME=VALUE."""
        secret = {os.fsencode(name) for name in names}
        pairs = (entry.partition(b"=") for entry in env)
        return cls(value for name, _, value in pairs if name in secret)

    def __bool__(self) -> bool:
        return self._pattern is not None

    def __or__(self, other: Masking) -> Masking:
        return Masking((*self._values, *other._values))

    @overload
    def whole(self, data: bytes) -> bytes: ...
    @overload
    def whole(self, data: str) -> str: ...
    def whole(self, data: bytes | str) -> bytes | str:
        """Mask a complete text."""
        if self._pattern is None:
            return data
        if isinstance(data, bytes):
            return self._pattern.sub(MASK, data)
        return self._pattern.sub(MASK, to_bytes(data)).decode("utf-8", "surrogateescape")

    def stream(self) -> MaskedStream:
        return MaskedStream(self._values, self._pattern)


class MaskedStream:
    """Masks a text that comes in chunks."""

    def __init__(self, values: tuple[bytes, ...], pattern: re.Pattern[bytes] | None) -> None:
        self._values = values
        self._pattern = pattern
        self._longest = max(map(len, values), default=0)
        self._kept = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return what can be shown now."""
        if self._pattern is None:
            return chunk
        data = self._kept + chunk
        shown = []
        begin = 0
        while True:
            hold = self._possible_beginning(data, begin)
            match = self._pattern.search(data, begin)
            if match is None or match.start() >= hold:
                break
            shown += [data[begin : match.start()], MASK]
            begin = match.end()
        shown.append(data[begin:hold])
        self._kept = data[hold:]
        return b"".join(shown)

    def finish(self) -> bytes:
        """Return what was kept back: nothing more comes."""
        data, self._kept = self._kept, b""
        return self._pattern.sub(MASK, data) if self._pattern is not None else data

    def _possible_beginning(self, data: bytes, begin: int) -> int:
        """Return where a value begins that may go on in the next chunk, or the end of data."""
        for start in range(max(begin, len(data) - self._longest + 1), len(data)):
            tail = data[start:]
            if any(len(value) > len(tail) and value.startswith(tail) for value in self._values):
                return start
        return len(data)
