"""Records to JSON and back.

Strict: an unknown key, a missing key and a wrong type are each a ValueError that says what is wrong and where
(`Expected `str`, got `int` - at `$.jobs[0].name``). Fields that have their default are left out. Where a field may be
one of several classes, the document says which one under the key `is` (`tag_field` of those classes). Enums are kept
by their value.

JSON text is plain ASCII. Text of records may hold lone surrogates (bytes of an argv, a path or a variable that are
not UTF-8): they are written as `\\udcXX` and come back as they were. msgspec's JSON refuses lone surrogates, writes
other text than ASCII as UTF-8 and NaN as null, so whatever may hold one of these goes through the standard library's.

msgspec describes a class at its first use, and the process ends by SIGSEGV where another thread meets a description
that is half made. So descriptions are made one at a time.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from aver.fast_start import c_thread

T = TypeVar("T")
LARGEST_INTEGER = 1 << 63


def encode(value: object) -> Any:
    """Return the value as dicts, tuples, texts and numbers, which `json` can write."""
    return msgspec.to_builtins(value)


def decode(declared: type[T], value: object) -> T:
    """Return the value of the declared type; raise ValueError, with its place, for anything that does not fit."""
    if declared not in _described:
        _describe(declared)
    return msgspec.convert(value, declared)


def dumps(value: object) -> str:
    """One line of plain ASCII; raise ValueError for a number that JSON does not have."""
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        return _encode_exactly(msgspec.to_builtins(value))
    if data.isascii() and b"null" not in data.replace(_NULL_IN_TEXT, b""):  # NaN is written as null
        return data.decode("ascii")
    return _encode_exactly(msgspec.to_builtins(value))


def dumps_rows(rows: object) -> str:
    """JSON of columns, in which a number that JSON does not have is null."""
    try:
        return _encode(rows).decode()
    except UnicodeEncodeError:
        return _encode_exactly(msgspec.to_builtins(rows))


def loads(declared: type[T], text: str) -> T:
    """Return what the JSON text says as the declared type; raise ValueError for anything that does not fit."""
    if declared not in _described:
        _describe(declared)
    try:
        return msgspec.json.decode(text, type=declared)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeEncodeError):  # lone surrogates, or no JSON
        return msgspec.convert(_decode_exactly(text), declared)


def read_json(declared: type[T], data: bytes) -> T:
    """As `loads`, of bytes that hold no lone surrogates: raise ValueError for those too."""
    if declared not in _described:
        _describe(declared)
    return msgspec.json.decode(data, type=declared)


def parse(data: bytes) -> Any:
    """What the JSON in a file of ours says; raise ValueError for anything that we can't have written.

    That is: nested too deeply, a number that is not finite or has no place in the store, a surrogate that no byte of a
    name is read as.
    """
    try:
        value = _decode_sane(data.decode())
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def parse_object(data: bytes) -> dict[str, Any]:
    """As `parse`, of one object. Who takes something out of a list or an object in it checks the size of numbers."""
    if b"\\u" not in data:
        try:
            return _decode_flat(data)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
    value = parse(data)
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


def _describe(declared: object) -> None:
    with _describing:
        msgspec.json.Decoder(declared)
    _described.add(declared)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large")
    return value


def _small(text: str) -> int:
    value = int(text)
    if not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
        raise ValueError(f"{text} is too large")
    return value


_described: set[object] = set()  # types whose descriptions are complete
_describing = c_thread.allocate_lock()
_NULL_IN_TEXT = b'\\":null'  # of JSON in a text, as records of witnesses are: no name of a field ends with a backslash
_encode = msgspec.json.Encoder().encode
_Plain = Annotated[int, msgspec.Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER - 1)] | float | str | bool | None
_decode_flat = msgspec.json.Decoder(dict[str, _Plain | list[Any] | dict[str, Any]]).decode
_encode_exactly = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode_exactly = json.JSONDecoder(parse_constant=_refuse_constant).decode
_decode_sane = json.JSONDecoder(parse_float=_finite, parse_int=_small, parse_constant=_refuse_constant).decode
