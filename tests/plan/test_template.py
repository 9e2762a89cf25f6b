"""`{name}` in texts."""

from __future__ import annotations

from aver.plan.placeholders import fill, names_in


def test_only_declared_names_are_replaced() -> None:
    """All other braces stay, and so does the shell's `${seed}`."""
    text = "{seed} {other} ${seed} {} {{seed}} awk '{print $1}' {seed"
    assert fill(text, {"seed": "7"}) == "7 {other} ${seed} {} {7} awk '{print $1}' {seed"


def test_a_value_is_not_looked_at_again() -> None:
    """A value that looks like a name stays as it is."""
    assert fill("{a}{b}", {"a": "{b}", "b": "x"}) == "{b}x"


def test_names() -> None:
    """Those that could be replaced."""
    assert names_in("{a} ${b} {c-d} {e1}") == {"a", "e1"}
