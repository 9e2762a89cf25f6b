"""A record is frozen, compared by value, and copied with changes."""

from __future__ import annotations

import copy
import pickle

import pytest

from aver.model.record import Record, field, replace


class Pair(Record):
    x: int
    y: str = "q"

    @property
    def doubled(self) -> int:
        return self.x * 2


class Other(Record):
    x: int
    y: str = "q"


class Factory(Record):
    x: list[int] = field(default_factory=list)


def test_values_defaults_and_methods() -> None:
    """Positional, named and default values, and what the class itself defines."""
    assert (Pair(1).x, Pair(1).y, Pair(x=2, y="w").y, Pair(4).doubled) == (1, "q", "w", 8)
    assert repr(Pair(1)) == "Pair(x=1, y='q')"


def test_equality_and_hash_go_by_value_and_class() -> None:
    """The same values of another class are not equal."""
    assert Pair(1) == Pair(1)
    assert Pair(1) != Pair(2)
    assert Pair(1).__eq__(Other(1)) is NotImplemented
    assert len({Pair(1), Pair(1), Pair(2)}) == 2


def test_a_record_is_frozen_and_has_no_dict() -> None:
    """Subclasses inherit it: no attribute can be set or deleted, whatever its name."""
    pair = Pair(1)
    for name in ("x", "other"):
        with pytest.raises(AttributeError):
            setattr(pair, name, 1)
    with pytest.raises(AttributeError):
        del pair.x
    assert not hasattr(pair, "__dict__")


@pytest.mark.parametrize("arguments", [(), (1, 2, 3)])
def test_wrong_arguments_are_a_type_error(arguments: tuple[int, ...]) -> None:
    """A missing and a surplus argument."""
    with pytest.raises(TypeError):
        Pair(*arguments)  # type: ignore[arg-type]


def test_replace_and_match() -> None:
    """A changed copy, a name that is not a field, and the fields as a pattern."""
    assert replace(Pair(1), y="w") == Pair(1, "w")
    with pytest.raises(TypeError):
        replace(Pair(1), z=1)  # type: ignore[call-arg]
    match Pair(5, "z"):
        case Pair(x, y):
            assert (x, y) == (5, "z")


def test_a_record_can_be_copied_and_pickled() -> None:
    """By value."""
    assert copy.deepcopy(Pair(1)) == Pair(1)
    assert pickle.loads(pickle.dumps(Pair(1, "w"))) == Pair(1, "w")


def test_a_factory_makes_each_instance_its_own_value() -> None:
    """Two instances do not share a list."""
    assert Factory().x is not Factory().x
