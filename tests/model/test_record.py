"""A record behaves as a standard frozen dataclass with slots."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from aver.model import record


@record.dataclass(frozen=True, slots=True)
class Late:
    x: int
    y: str = "q"

    @property
    def doubled(self) -> int:
        return self.x * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    x: int
    y: str = "q"


@record.dataclass(frozen=True, slots=True)
class Empty:
    pass


@record.dataclass(frozen=True, slots=True)
class One:
    x: int = 3


@record.dataclass(frozen=True, slots=True)
class Factory:
    x: list[int] = dataclasses.field(default_factory=list)


def test_values_defaults_and_methods() -> None:
    """Positional, named and default values, and what the class itself defines."""
    assert (Late(1).x, Late(1).y, Late(x=2, y="w").y, Late(4).doubled) == (1, "q", "w", 8)
    assert repr(Late(1)) == "Late(x=1, y='q')"


def test_equality_and_hash_go_by_value_and_class() -> None:
    """The same values of another class are not equal."""
    assert Late(1) == Late(1)
    assert Late(1) != Late(2)
    assert Late(1).__eq__(Standard(1)) is NotImplemented
    assert len({Late(1), Late(1), Late(2)}) == 2
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert (One(), hash(One())) == (One(3), hash(One(3)))


def test_it_is_frozen_and_has_no_dict() -> None:
    """As a standard one: FrozenInstanceError, whatever the name."""
    late = Late(1)
    for name in ("x", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(late, name, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del late.x
    assert not hasattr(late, "__dict__")


@pytest.mark.parametrize("arguments", [(), (1, 2, 3)])
def test_wrong_arguments_are_a_type_error(arguments: tuple[int, ...]) -> None:
    """The sentence names the class, as Python's own does."""
    with pytest.raises(TypeError, match="Late"):
        Late(*arguments)  # type: ignore[arg-type]


def test_the_standard_library_sees_a_dataclass() -> None:
    """fields, replace, asdict, is_dataclass and match."""
    assert dataclasses.is_dataclass(Late)
    ours, theirs = dataclasses.fields(Late), dataclasses.fields(Standard)
    assert [(f.name, f.type, f.default) for f in ours] == [(f.name, f.type, f.default) for f in theirs]
    assert dataclasses.replace(Late(1), y="w") == Late(1, "w")
    assert dataclasses.asdict(Late(1)) == {"x": 1, "y": "q"}
    match Late(5, "z"):
        case Late(x, y):
            assert (x, y) == (5, "z")


def test_it_can_be_copied_and_pickled() -> None:
    """By value."""
    assert copy.deepcopy(Late(1)) == Late(1)
    assert pickle.loads(pickle.dumps(Late(1, "w"))) == Late(1, "w")


def test_a_factory_goes_to_the_standard_decorator() -> None:
    """What is not plain is made at once, by the standard library."""
    assert Factory().x is not Factory().x
    assert Factory.__init__.__module__ != record.__name__


def test_nothing_is_compiled_at_import() -> None:
    """The methods come with the first instance."""

    @record.dataclass(frozen=True, slots=True)
    class Unused:
        x: int

    assert Unused.__init__ is record._first_init
    Unused(1)
    assert Unused.__init__ is not record._first_init
