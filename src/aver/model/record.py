"""`dataclass` as the standard library has it, for frozen classes with slots, and cheap to import.

The standard decorator compiles six methods for each class when it is imported, 0.4 to 0.7 ms; a command that
lists jobs imports a hundred such classes and makes instances of ten. Here a class gets its slots at once, its
`__init__` with its first instance, and shares the other methods. To mypy it is `dataclasses.dataclass`.

Classes that ask for more (mutable, inheritance, factories, ClassVar) go to the standard decorator at once.
What always holds: `fields`, `replace`, `is_dataclass`, `match`, copying, comparing and hashing work as ever.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
    from typing import Any

_NOT_COPIED = frozenset({"__dict__", "__weakref__"})
_ABSENT = object()

if not TYPE_CHECKING:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """As `dataclasses.dataclass`; `frozen=True, slots=True` alone is made late."""
        if cls is None:
            return lambda found: dataclass(found, **options)
        if options != {"frozen": True, "slots": True} or not _is_plain(cls):
            from dataclasses import dataclass as standard

            return standard(cls, **options)
        return _with_slots(cls)


def _is_plain(cls: type) -> bool:
    own = cls.__dict__
    if cls.__bases__ != (object,) or "__post_init__" in own or "__slots__" in own:
        return False
    return not any(
        "Var" in str(kind) or "KW_ONLY" in str(kind) or type(own.get(name)).__name__ == "Field"
        for name, kind in cls.__annotations__.items()
    )


def _with_slots(source: type) -> type:
    names = tuple(source.__annotations__)
    kept = {name: value for name, value in source.__dict__.items() if name not in _NOT_COPIED and name not in names}
    made = {
        "__init__": _first_init,
        "__eq__": _equals,
        "__hash__": _hash,
        "__repr__": _repr,
        "__setattr__": _refuse_setting,
        "__delattr__": _refuse_deleting,
        "__getstate__": _values,
        "__setstate__": _set_values,
        "__dataclass_fields__": _LateFields(),
    }
    made.update(kept, __slots__=names, __match_args__=names, __record_source__=source)
    return type(source)(source.__name__, source.__bases__, made)


class _LateFields:
    """`__dataclass_fields__`, there once somebody asks for it."""

    def __get__(self, instance: object, owner: Any) -> Any:
        from dataclasses import dataclass as standard

        cls = _owner(owner)
        source = cls.__record_source__
        source.__doc__ = source.__doc__ or cls.__name__  # without one, the standard decorator works out a signature
        plain = standard(init=False, repr=False, eq=False)(source)
        cls.__dataclass_fields__ = plain.__dataclass_fields__
        cls.__dataclass_params__ = plain.__dataclass_params__
        return cls.__dataclass_fields__


def _first_init(self: Any, *args: Any, **named: Any) -> None:
    """Make the class's own methods, and call its `__init__`."""
    cls = _owner(type(self))
    if len(cls.__slots__) > 1 and cls.__eq__ is _equals:
        cls.__eq__, cls.__hash__ = _make_comparison(cls)
    cls.__init__ = _make_init(cls)
    cls.__init__(self, *args, **named)


def _make_comparison(cls: Any) -> tuple[Callable[..., Any], Callable[..., int]]:
    """As `_equals` and `_hash`, three times as quick."""
    from operator import attrgetter

    values = attrgetter(*cls.__slots__)

    def equals(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values(self))

    return equals, hash_of


def _make_init(cls: Any) -> Callable[..., None]:
    """A function that sets each slot through its descriptor, which is quicker than `object.__setattr__`."""
    space: dict[str, Any] = {"__name__": cls.__module__}
    parameters, sets = ["self"], []
    for name in cls.__slots__:
        default = cls.__record_source__.__dict__.get(name, _ABSENT)
        parameters.append(name if default is _ABSENT else f"{name}=_default_{name}")
        space[f"_default_{name}"] = default
        space[f"_set_{name}"] = cls.__dict__[name].__set__
        sets.append(f" _set_{name}(self, {name})")
    exec(f"def __init__({', '.join(parameters)}):\n" + ("\n".join(sets) or " pass"), space)
    made: Callable[..., None] = space["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**cls.__annotations__, "return": None}
    return made


def _owner(cls: Any) -> Any:
    return next(base for base in cls.__mro__ if "__record_source__" in base.__dict__)


def _values(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__slots__]


def _set_values(self: Any, values: list[Any]) -> None:
    for name, value in zip(self.__slots__, values, strict=True):
        object.__setattr__(self, name, value)


def _equals(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(_values(self)))


def _repr(self: Any) -> str:
    parts = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
    return f"{self.__class__.__qualname__}({', '.join(parts)})"


def _refuse_setting(self: object, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")
