"""Names of output files with patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.spec.patterns import Facts, expand_pattern

FACTS = Facts(job=42, run=7, name="a/b", user="me", node="n1.example.org", member=3)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("out-%j.txt", "out-42.txt"),
        ("%4j", "0042"),
        ("%999999999999j", "0000000042"),
        ("%x-%u@%N", "a_b-me@n1"),
        ("%A_%a", "7_3"),
        ("%3a", "003"),
        ("100%%j", "100%j"),
        ("%q %t %", "%q %t %"),
        ("dir/%j", "dir/42"),
        ("\\%j", "%j"),
    ],
)
def test_patterns(pattern: str, name: str) -> None:
    """Known patterns are replaced, widths fill with zeros, unknown ones stay."""
    assert expand_pattern(pattern, FACTS) == name


@given(st.text(), st.text())
def test_a_name_adds_no_folder(name: str, rest: str) -> None:
    """Whatever the job is called, the file stays where the pattern puts it."""
    made = expand_pattern("d/%x", Facts(1, 1, name, "me", "n"))
    assert made.count("/") == 1
    assert made not in ("d/.", "d/..")
    assert "\0" not in made
    expand_pattern(rest, FACTS)
