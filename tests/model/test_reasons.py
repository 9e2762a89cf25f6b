"""Reason strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model import reasons
from aver.model.reasons import NeedKind, NeedReason, counts_as_success, need_reason, parse_need_reason
from aver.model.states import SETTLED, UNSETTLED, State


def test_raised_signal() -> None:
    """A signal's reason has number and Slurm's text."""
    assert reasons.raised_signal(11) == "RaisedSignal:11(Segmentation_fault)"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State.FAILED, "NeedFailed:prep(FAILED)"),
        (State.OUT_OF_MEMORY, "NeedFailed:prep(OUT_OF_MEMORY)"),
        (State.CANCELLED, "NeedFailed:prep(CANCELLED)"),
        (State.UNVERIFIED, "NeedUnverified:prep(UNVERIFIED)"),
        (State.SKIPPED, "NeedSkipped:prep(SKIPPED)"),
        (State.COMPLETED, "NeedSucceeded:prep(COMPLETED)"),
    ],
)
def test_need_reasons(state: State, text: str) -> None:
    """A SKIPPED job's reason names the need and its state."""
    assert need_reason("prep", state) == text


@given(st.text(min_size=1), st.sampled_from(sorted(SETTLED)))
def test_need_reasons_are_read_back(need: str, state: State) -> None:
    """Whatever the need is called, brackets and colons included, its reason is read back."""
    read = parse_need_reason(need_reason(need, state))
    assert read is not None
    assert (read.need, read.state) == (need, state)


@pytest.mark.parametrize("state", sorted(UNSETTLED))
def test_an_unsettled_need_skips_nobody(state: State) -> None:
    """There is no reason for a need that is not settled."""
    with pytest.raises(ValueError, match="not settled"):
        need_reason("prep", state)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "NeedFailed",
        "NeedFailed:prep",
        "NeedFailed:(FAILED)",
        "NeedFailed:a(NO)",
        "Else:a(FAILED)",
        "NeedFailed:a(FAILED",
    ],
)
def test_other_reasons_name_no_need(text: str) -> None:
    """A reason of another form names no need."""
    assert parse_need_reason(text) is None


def test_which_skips_count_as_success() -> None:
    """Only a condition that did not apply counts as success."""
    assert counts_as_success(reasons.CONDITION_NOT_MET)
    assert counts_as_success(need_reason("prep", State.COMPLETED))
    for state in SETTLED - {State.COMPLETED}:
        assert not counts_as_success(need_reason("prep", state))


def test_the_parts_make_the_text() -> None:
    """A NeedReason prints as the reason."""
    assert str(NeedReason(NeedKind.FAILED, "a[x=1]", State.TIMEOUT)) == "NeedFailed:a[x=1](TIMEOUT)"
