"""The transition table, and the page that says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.states import (
    ACTIVE,
    ATTEMPT_MOVES,
    ENDED_BY_ENGINE,
    MOVES,
    SETTLED,
    UNSETTLED,
    State,
    attempt_may_move,
    may_move,
)

PAGE = Path(__file__).parents[2] / "docs" / "design" / "states.md"


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its two header lines."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def states_in(cell: str) -> frozenset[State]:
    words = [word.strip() for word in cell.split(",") if word.strip()]
    named = {State(word) for word in words if word != "*ended*"}
    return frozenset(named | (ENDED_BY_ENGINE if "*ended*" in words else frozenset()))


def test_the_page_says_which_states_are_settled() -> None:
    """The page's first table names every state once, and says rightly whether it is settled."""
    table = rows("What each state means")
    assert [row[0] for row in table] == [state.value for state in State]
    assert {State(row[0]) for row in table if row[1] == "yes"} == SETTLED
    assert {State(row[0]) for row in table if row[1] == "no"} == UNSETTLED
    assert all(row[2] for row in table)


def test_the_page_has_the_same_moves_as_the_table() -> None:
    """The page's second table and the code allow exactly the same moves, to a job and to an attempt."""
    table = rows("Which state may follow which")
    assert [row[0] for row in table] == [state.value for state in State]
    for name, both, job_alone in table:
        state = State(name)
        stay = {state}
        assert states_in(both) - stay == ATTEMPT_MOVES[state] - stay, name
        assert states_in(both) | states_in(job_alone) | stay == MOVES[state] | stay, name


@pytest.mark.parametrize(
    ("before", "after", "job", "attempt"),
    [
        (State.PENDING, State.CANCELLED, True, True),
        (State.PENDING, State.SKIPPED, True, False),
        (State.PENDING, State.DEADLINE, True, True),
        (State.SKIPPED, State.PENDING, True, False),
        (State.SKIPPED, State.RUNNING, False, False),
        (State.SKIPPED, State.COMPLETED, False, False),
        (State.RUNNING, State.SKIPPED, False, False),
        (State.RUNNING, State.PENDING, True, False),
        (State.RUNNING, State.SUBMITTED, False, False),
        (State.COMPLETED, State.RUNNING, False, False),
        (State.COMPLETED, State.SKIPPED, False, False),
        (State.UNVERIFIED, State.COMPLETED, True, True),
        (State.UNVERIFIED, State.PENDING, True, False),
        (State.COMPLETING, State.RUNNING, False, False),
        (State.SETTLING, State.RUNNING, True, True),
        (State.SUBMITTED, State.PENDING, True, True),
    ],
)
def test_moves(before: State, after: State, job: bool, attempt: bool) -> None:
    """Named moves: corrections and returns are allowed, short cuts are not."""
    assert may_move(before, after) is job
    assert attempt_may_move(before, after) is attempt


def test_staying_is_allowed() -> None:
    """A new reason is not a move; only an attempt is never SKIPPED."""
    assert all(may_move(state, state) for state in State)
    assert {state for state in State if not attempt_may_move(state, state)} == {State.SKIPPED}


def test_active_and_settled_split_the_states() -> None:
    """Every state is PENDING, active or settled, and only one of them."""
    assert {State.PENDING} | ACTIVE | SETTLED == set(State)
    assert not ACTIVE & SETTLED
    assert all(state.is_settled == (state in SETTLED) and state.is_active == (state in ACTIVE) for state in State)


@given(st.lists(st.integers(min_value=0, max_value=100), min_size=1, max_size=60))
def test_random_walks_keep_the_laws(choices: list[int]) -> None:
    """On any walk: SKIPPED comes from PENDING alone, and a settled job runs again only after being PENDING."""
    state = State.PENDING
    for choice in choices:
        allowed = sorted(MOVES[state])
        after = allowed[choice % len(allowed)]
        assert may_move(state, after)
        if after is State.SKIPPED:
            assert state is State.PENDING
        if state.is_settled and not after.is_settled:
            assert after is State.PENDING
        state = after


@given(st.lists(st.integers(min_value=0, max_value=100), min_size=1, max_size=60))
def test_an_attempt_that_ended_never_lives_again(choices: list[int]) -> None:
    """On any walk of an attempt, what is settled stays settled: only corrections follow."""
    state = State.SUBMITTED
    has_ended = False
    for choice in choices:
        allowed = sorted(ATTEMPT_MOVES[state])
        state = allowed[choice % len(allowed)]
        assert state is not State.SKIPPED
        assert state.is_settled or not has_ended
        has_ended = has_ended or state.is_settled
