"""Frozen dataclasses to JSON-able values and back.

Strict: an unknown key, a missing key and a wrong type are each a ValueError that names the
place and says what is wrong. Fields that have their default are left out. Where a field may
be one of several dataclasses, the document says which one under the key `is`, which no
field can have as its name. Enums are kept by their value. A class with a static method
`read_older` brings documents of earlier versions into its present form.

Pure. What a class looks like is worked out once for each class. Text may hold lone
surrogates (bytes of an argv that are not UTF-8): `dumps` writes plain ASCII, so they survive.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Encoder = Callable[[Any], Any]
Decoder = Callable[[Any], Any]

TAG = "is"


class DecodeError(ValueError):
    """What is wrong, and where: the path grows while the error travels up."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.path: list[str] = []

    def __str__(self) -> str:
        path = "".join(reversed(self.path)).lstrip(".")
        return f"{path}: {self.sentence}" if path else self.sentence


def encode(value: object, declared: Any = None) -> Any:
    """Return the JSON-able form. `declared` is the declared type, needed only when that is a union."""
    chosen: Any = type(value) if declared is None else declared
    return _encoder(chosen)(value)


def decode(declared: type[T], value: object) -> T:
    """Return the value of the declared type; raise ValueError, with its place, for anything that does not fit."""
    return cast(T, decode_union(declared, value))


def decode_union(declared: Any, value: object) -> Any:
    """As `decode`, for a union such as Command, which is no class."""
    return _decoder(declared)(value)


def dumps(value: object) -> str:
    """One line of plain ASCII; raise ValueError for a number that JSON does not have."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


@cache
def _encoder(declared: Any) -> Encoder:
    if declared is float:
        return _encode_float
    if declared in (str, int, bool, NoneType):
        return _same
    origin = get_origin(declared)
    if origin is tuple:
        return _tuple_encoder(declared)
    if origin in (Union, UnionType):
        return _union_encoder(declared)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return _encode_enum
    if is_dataclass(declared):
        return _class_encoder(cast(type, declared))
    raise TypeError(f"{declared!r} has no JSON form")


def _same(value: Any) -> Any:
    return value


def _encode_float(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value!r} has no JSON form")
    return value


def _encode_enum(value: Enum) -> Any:
    return value.value


def _tuple_encoder(declared: Any) -> Encoder:
    args = get_args(declared)
    if len(args) == 2 and args[1] is Ellipsis:
        item = _encoder(args[0])
        if item is _same:
            return list
        return lambda value: [item(one) for one in value]
    items = tuple(_encoder(arg) for arg in args)
    return lambda value: [item(one) for item, one in zip(items, value, strict=True)]


def _union_encoder(declared: Any) -> Encoder:
    members: list[Any] = [member for member in get_args(declared) if member is not NoneType]
    if len(members) == 1:
        inner = _encoder(members[0])
        if inner is _same:
            return _same
        return lambda value: None if value is None else inner(value)
    if not all(is_dataclass(member) for member in members):
        raise TypeError(f"{declared!r}: only a union of dataclasses has a JSON form")
    by_class = {member: _encoder(member) for member in members}

    def encode_member(value: Any) -> Any:
        if value is None:
            return None
        return {TAG: type(value).__name__, **by_class[type(value)](value)}

    return encode_member


def _class_encoder(declared: type) -> Encoder:
    hints = get_type_hints(declared)
    plan = tuple((one.name, _default(one), _encoder(hints[one.name])) for one in fields(declared))

    def encode_class(value: Any) -> dict[str, Any]:
        document = {}
        for name, default, encoder in plan:
            held = getattr(value, name)
            if held is not default and held != default:
                document[name] = encoder(held)
        return document

    return encode_class


def _default(one: Any) -> Any:
    if one.default_factory is not MISSING:
        raise TypeError(f"{one.name}: a default that is made by a function is not supported")
    return one.default


@cache
def _decoder(declared: Any) -> Decoder:
    if declared is float:
        return _decode_float
    if declared is str:
        return _decode_str
    if declared is int:
        return _decode_int
    if declared is bool:
        return _decode_bool
    origin = get_origin(declared)
    if origin is tuple:
        return _tuple_decoder(declared)
    if origin in (Union, UnionType):
        return _union_decoder(declared)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return _enum_decoder(declared)
    if is_dataclass(declared):
        return _class_decoder(cast(type, declared))
    raise TypeError(f"{declared!r} has no JSON form")


def _wrong(value: object, wanted: str) -> DecodeError:
    text = repr(value)
    return DecodeError(f"{text if len(text) <= 60 else text[:57] + '...'} is not {wanted}")


def _decode_str(value: Any) -> str:
    if type(value) is not str:
        raise _wrong(value, "text")
    return value


def _decode_int(value: Any) -> int:
    if type(value) is not int:
        raise _wrong(value, "a whole number")
    return value


def _decode_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(value, "true or false")
    return value


def _decode_float(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) < 1 << 53:
        return float(value)
    raise _wrong(value, "a number")


def _enum_decoder(declared: type[Enum]) -> Decoder:
    members = {member.value: member for member in declared}

    def decode_enum(value: Any) -> Enum:
        if type(value) is not str or value not in members:
            raise _wrong(value, f"one of {', '.join(map(str, members))}")
        return members[value]

    return decode_enum


def _tuple_decoder(declared: Any) -> Decoder:
    args = get_args(declared)
    if len(args) == 2 and args[1] is Ellipsis:
        item = _decoder(args[0])
        return lambda value: _decode_items(value, [item] * len(value) if type(value) is list else [])
    items = [_decoder(arg) for arg in args]
    return lambda value: _decode_items(value, items)


def _decode_items(value: Any, items: list[Decoder]) -> tuple[Any, ...]:
    if type(value) is not list:
        raise _wrong(value, "a list")
    if len(value) != len(items):
        raise _wrong(value, f"a list of {len(items)}")
    decoded: list[Any] = []
    try:
        for item, one in zip(items, value, strict=True):
            decoded.append(item(one))
    except DecodeError as error:
        error.path.append(f"[{len(decoded)}]")
        raise
    return tuple(decoded)


def _union_decoder(declared: Any) -> Decoder:
    args = get_args(declared)
    members = [member for member in args if member is not NoneType]
    inner = _decoder(members[0]) if len(members) == 1 else _tagged_decoder(declared, members)
    if NoneType not in args:
        return inner
    return lambda value: None if value is None else inner(value)


def _tagged_decoder(declared: Any, members: list[Any]) -> Decoder:
    if not all(is_dataclass(member) for member in members):
        raise TypeError(f"{declared!r}: only a union of dataclasses has a JSON form")
    by_name = {member.__name__: _decoder(member) for member in members}

    def decode_member(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        name = value.get(TAG)
        if type(name) is not str or name not in by_name:
            raise DecodeError(f'"{TAG}" must be one of {", ".join(by_name)}, and is {name!r}')
        return by_name[name]({key: held for key, held in value.items() if key != TAG})

    return decode_member


def _class_decoder(declared: type) -> Decoder:
    hints = get_type_hints(declared)
    plan = {one.name: _decoder(hints[one.name]) for one in fields(declared)}
    required = frozenset(one.name for one in fields(declared) if _default(one) is MISSING)
    read_older: Decoder = getattr(declared, "read_older", _same)

    def decode_class(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        value = read_older(value)
        arguments = {}
        key = ""
        try:
            for key, held in value.items():
                arguments[key] = plan[key](held)
        except KeyError:
            raise DecodeError(f"{declared.__name__} has no {key!r}") from None
        except DecodeError as error:
            error.path.append(f".{key}")
            raise
        if not required <= arguments.keys():
            raise DecodeError(f"{declared.__name__} lacks {', '.join(sorted(required - arguments.keys()))}")
        try:
            return declared(**arguments)
        except ValueError as error:
            raise DecodeError(str(error)) from None

    return decode_class
