"""Names, globs and addresses of jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.plan.address import Address, NameIndex, glob_pattern, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("train", Address("train")),
        ("train[seed=2]", Address("train", (("seed", "2"),))),
        ("train[seed=2,lr=0.1]", Address("train", (("seed", "2"), ("lr", "0.1")))),
        ("train[x=a,b]", Address("train", (("x", "a,b"),))),
        ("train[*]", Address("train")),
        ("t*[seed=*]", Address("t*", (("seed", "*"),))),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    """A name or glob, and values of axes; a comma without `=` belongs to the value."""
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["train[", "train[seed=2", "train[seed]", "train[=2]", "train[]"])
def test_half_addresses(text: str) -> None:
    """They are refused with how to write one."""
    with pytest.raises(ValueError, match="write name"):
        parse_address(text)


@given(st.lists(st.text("ab1", min_size=1, max_size=4), unique=True), st.text("ab1*?", min_size=1, max_size=4))
def test_the_index_finds_what_a_walk_finds(names: list[str], glob: str) -> None:
    """The same names, in order."""
    assert NameIndex(names).matching(glob) == sorted(name for name in names if glob_pattern(glob).fullmatch(name))
