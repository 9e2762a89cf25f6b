"""Ids as Slurm prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.engines.slurm.commands.ids import Members, SlurmId, parse_id, parse_members


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", SlurmId(7)),
        ("7_3", SlurmId(7, index=3)),
        ("7_0", SlurmId(7, index=0)),
        ("7_[3-9%2]", SlurmId(7, members=Members(((3, 9, 1),), limit=2))),
        ("7_[1,3,5-7:2%4]", SlurmId(7, members=Members(((1, 1, 1), (3, 3, 1), (5, 7, 2)), limit=4))),
        ("7+1", SlurmId(7, het=1)),
        ("7_3.batch", SlurmId(7, index=3, step="batch")),
        ("7.0", SlurmId(7, step="0")),
        ("7.extern", SlurmId(7, step="extern")),
        ("7.interactive", SlurmId(7, step="interactive")),
        ("7+1.batch", SlurmId(7, het=1, step="batch")),
        ("7_3.exte+", SlurmId(7, index=3, step="exte+")),
        ("7_[1,3,...]", SlurmId(7, members=Members(((1, 1, 1), (3, 3, 1)), is_whole=False))),
        ("7_[1,3,5...%2]", SlurmId(7, members=Members(((1, 1, 1), (3, 3, 1)), limit=2, is_whole=False))),
    ],
)
def test_forms_that_slurm_prints(text: str, expected: SlurmId) -> None:
    """Every form of an id is read, and a list that was cut says so."""
    assert parse_id(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", " 7", "7 ", "-7", "+7", "7_", "7.", "7_[", "7_[]", "7_[3-1]", "7_[1-3:0]", "7_[%2]", "7_[a]", "7_3_4",
        "7+", "7_3+1", "job 7", "7;lab", "٧", "7\n", "99999999999", "4294967296", "7_4294967296", "7.a b", "N/A",
        "7_[,]",
    ],
)  # fmt: skip
def test_what_is_no_id(text: str) -> None:
    """Anything else is None."""
    assert parse_id(text) is None


def test_members_are_counted_and_found() -> None:
    """A list knows how many it names and which, without writing them out."""
    members = parse_members("1,5-4000000000:2%7")
    assert members is not None
    assert len(members) == 1 + (4_000_000_000 - 5) // 2 + 1
    assert 1 in members
    assert 7 in members
    assert 6 not in members
    assert "1" not in members


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.sampled_from(["", ".batch", ".0"]))
def test_members_of_arrays_round_trip(job: int, index: int, step: str) -> None:
    """What is written as an id is read as the same numbers."""
    assert parse_id(f"{job}_{index}{step}") == SlurmId(job, index=index, step=step[1:])


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("0123456789_[]%:,.+-"), max_size=40))
def test_any_text_is_read_or_not(text: str) -> None:
    """No text raises, and no number comes out that was not there."""
    found = parse_id(text)
    if found is not None:
        assert text.startswith(str(found.job)) or text.lstrip("0").startswith(str(found.job)) or found.job == 0
