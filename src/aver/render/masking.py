"""Replace the values of secrets by `***` in everything that is shown. Pure.

A value is found as it is, line by line, and as shells, JSON and Python quote it. Where a value was removed from the
home, keyed digests of all these forms are left: each window of a text that has a form's length is compared with them.
A stream keeps back what may be the beginning of a value until more comes or the stream ends. Empty values are no
secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, overload

MASK = b"***"
SHORTEST_LINE = 4  # shorter lines of a value would mask too much that is harmless
_BASH_QUOTED = re.compile(r"""([\s!"$&'()*,;<>?\[\\\]^`{|}]|\A[#~])""")
_IN_DOUBLE_QUOTES = re.compile(r'(["$\\`])')
_ANSI_C = {
    "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r", "\x1b": "\\E",
    "\\": "\\\\", "'": "\\'",
}  # fmt: skip
_PRIME = 65521  # a rolling check of 16 bits tells nearly all windows apart, and next to nothing about the value
_DIGEST_BYTES = 16


def to_bytes(text: str) -> bytes:
    """The bytes that a text stands for; those that were not UTF-8 become again what they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        return text.encode("utf-8", "backslashreplace")


@lru_cache(maxsize=1024)
def forms(value: bytes) -> frozenset[bytes]:
    """How a value may be written: as it is, without its line ends, each line, and each of these quoted."""
    pieces = {value, value.strip(b"\r\n"), b" ".join(value.split())}
    pieces |= {line for line in value.splitlines() if len(line) >= SHORTEST_LINE}
    quoted = {form for piece in pieces for form in _quoted(piece)}
    within = {form for one in quoted for form in _json(one.decode("utf-8", "surrogateescape"))}
    return frozenset(form for form in pieces | quoted | within if form)


def _quoted(piece: bytes) -> list[bytes]:
    text = piece.decode("utf-8", "surrogateescape")
    return [
        *_json(text),
        repr(piece)[2:-1].encode(),
        *(
            to_bytes(form)
            for form in (
                repr(text)[1:-1],
                repr("\"'" + text)[4:-1],  # inside a longer text that has both kinds of quotes
                text.replace("'", "'\"'\"'"),  # shlex.quote, dash
                text.replace("'", "'\\''"),  # bash -x
                _IN_DOUBLE_QUOTES.sub(r"\\\1", text),  # declare -p
                _BASH_QUOTED.sub(r"\\\1", text),  # printf %q
                "".join(_ANSI_C.get(char) or _printable(char, lambda code: f"\\{code:03o}") for char in text),  # $'…'
                "".join(_printable(char, lambda code: chr(code).encode("unicode_escape").decode()) for char in text),
            )
        ),
    ]


def _json(text: str) -> list[bytes]:
    import json

    return [json.dumps(text)[1:-1].encode(), to_bytes(json.dumps(text, ensure_ascii=False)[1:-1])]


def _printable(char: str, spelled: Callable[[int], str]) -> str:
    return char if char.isprintable() or "\udc80" <= char <= "\udcff" else spelled(ord(char))


class Digests:
    """What is left of values that were removed: of each form its length, a rolling check and a keyed digest."""

    def __init__(self, key: bytes, lines: Iterable[bytes] = ()) -> None:
        """`lines` as `lines_of` makes them with the same key; others are passed over."""
        self._key = key
        self._base = 256 + int.from_bytes(_digest(key, b"base")[:4], "big") % (_PRIME - 512)
        self.lines = frozenset(lines)
        self._wanted: dict[int, dict[int, set[bytes]]] = {}
        for line in self.lines:
            parts = line.split(b":")
            if len(parts) == 3 and parts[0].isdigit() and parts[1].isdigit() and int(parts[0]):
                checks = self._wanted.setdefault(int(parts[0]), {})
                checks.setdefault(int(parts[1]), set()).add(parts[2])
        self.longest = max(self._wanted, default=0)

    def lines_of(self, value: bytes) -> list[bytes]:
        """The lines to keep of a value, for all its forms."""
        return [b"%d:%d:%s" % (len(form), self._check(form), self._sealed(form)) for form in sorted(forms(value))]

    def __or__(self, other: Digests) -> Digests:
        return self if other.lines <= self.lines else Digests(self._key, self.lines | other.lines)

    def mask(self, data: bytes, *, is_end: bool) -> tuple[bytes, bytes]:
        """The data masked, and the rest of it that can't be decided before more comes."""
        decided = len(data) if is_end else max(0, len(data) - self.longest + 1)
        shown = []
        begin = 0
        for start, length in self._spans(data):
            if start >= decided:
                break
            if start >= begin:
                shown += [data[begin:start], MASK]
                begin = start + length
        shown.append(data[begin:decided])
        return b"".join(shown), data[max(begin, decided) :]

    def _spans(self, data: bytes) -> list[tuple[int, int]]:
        """Where values stand, the longest first of those that begin together."""
        spans = []
        base = self._base
        for length, wanted in self._wanted.items():
            if length > len(data):
                continue
            top = pow(base, length - 1, _PRIME)
            check = self._check(data[:length])
            for start in range(len(data) - length + 1):
                if check in wanted and self._sealed(data[start : start + length]) in wanted[check]:
                    spans.append((start, length))
                if start + length < len(data):
                    check = ((check - data[start] * top) * base + data[start + length]) % _PRIME
        return sorted(spans, key=lambda span: (span[0], -span[1]))

    def _check(self, form: bytes) -> int:
        check = 0
        for byte in form:
            check = (check * self._base + byte) % _PRIME
        return check

    def _sealed(self, form: bytes) -> bytes:
        return _digest(self._key, b"mask " + form).hex().encode()


def _digest(key: bytes, data: bytes) -> bytes:
    import hmac

    return hmac.digest(key, data, "sha256")[:_DIGEST_BYTES]


class Masking:
    """The values to hide. Without any, everything passes as it is."""

    def __init__(self, values: Iterable[bytes] = (), digests: Digests | None = None) -> None:
        self._plain = frozenset(value for value in values if value)
        found = {form for value in self._plain for form in forms(value)}
        self._forms = tuple(sorted(found, key=lambda form: (-len(form), form)))
        self._pattern = re.compile(b"|".join(map(re.escape, self._forms))) if self._forms else None
        self._digests = digests if digests is not None and digests.longest else None

    def __bool__(self) -> bool:
        return self._pattern is not None or self._digests is not None

    def __or__(self, other: Masking) -> Masking:
        if not self or not other:
            return self or other
        digests = self._digests or other._digests
        if self._digests is not None and other._digests is not None:
            digests = self._digests | other._digests
        if digests is self._digests and other._plain <= self._plain:
            return self
        return Masking(self._plain | other._plain, digests)

    @overload
    def whole(self, data: bytes) -> bytes: ...
    @overload
    def whole(self, data: str) -> str: ...
    def whole(self, data: bytes | str) -> bytes | str:
        """Mask a complete text."""
        if not self:
            return data
        if isinstance(data, str):
            return self.whole(to_bytes(data)).decode("utf-8", "surrogateescape")
        if self._digests is not None:
            data, _ = self._digests.mask(data, is_end=True)
        return data if self._pattern is None else self._pattern.sub(MASK, data)

    def document(self, value: Any) -> Any:
        """Mask each text of a JSON document."""
        if not self:
            return value
        if isinstance(value, str):
            return self.whole(value)
        if isinstance(value, dict):
            return {key: self.document(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.document(one) for one in value]
        return value

    def stream(self) -> MaskedStream:
        return MaskedStream(self._forms, self._pattern, self._digests)


def values_of(env: Iterable[bytes], names: Iterable[str]) -> list[bytes]:
    """The values of `names` in a list of NAME=VALUE."""
    wanted = {to_bytes(name) for name in names}
    return [value for name, _, value in (entry.partition(b"=") for entry in env) if name in wanted]


class MaskedStream:
    """Masks a text that comes in chunks: first what is known by its digests, then what is known."""

    def __init__(
        self, values: tuple[bytes, ...], pattern: re.Pattern[bytes] | None, digests: Digests | None = None
    ) -> None:
        self._pattern = pattern
        self._digests = digests
        self._longest = max(map(len, values), default=0)
        self._by_first: dict[int, list[bytes]] = {}
        for value in values:
            self._by_first.setdefault(value[0], []).append(value)
        self._undecided = b""
        self._kept = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return what can be shown now."""
        if self._digests is not None:
            chunk, self._undecided = self._digests.mask(self._undecided + chunk, is_end=False)
        return self._feed(chunk)

    def _feed(self, chunk: bytes) -> bytes:
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
        shown = b""
        if self._digests is not None:
            undecided, self._undecided = self._undecided, b""
            shown = self._feed(self._digests.mask(undecided, is_end=True)[0])
        data, self._kept = self._kept, b""
        return shown + (self._pattern.sub(MASK, data) if self._pattern is not None else data)

    def _possible_beginning(self, data: bytes, begin: int) -> int:
        """Return where a value begins that may go on in the next chunk, or the end of data."""
        for start in range(max(begin, len(data) - self._longest + 1), len(data)):
            values = self._by_first.get(data[start])
            if values is not None:
                tail = data[start:]
                if any(len(value) > len(tail) and value.startswith(tail) for value in values):
                    return start
        return len(data)
