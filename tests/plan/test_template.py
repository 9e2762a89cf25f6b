"""`{name}` in texts."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from aver.plan.placeholders import fill, fill_shell, names_in


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


@settings(max_examples=30)
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_shell_sees_the_value_as_one_word(value: str) -> None:
    """Whatever is in it, nothing is run and nothing is split."""
    text = fill_shell("printf %s {a}", {"a": value})
    done = subprocess.run(["bash", "-c", text], capture_output=True, check=True)
    assert done.stdout.decode() == value
