"""The states in which jobs are settled as small numbers, for tables with a byte a job, and what needs want of them."""

from __future__ import annotations

from aver.model.job import Condition, Need, Outcome
from aver.model.states import SETTLED, State

CODES: dict[State, int] = {state: code for code, state in enumerate((s for s in State if s in SETTLED), 1)}
STATES: tuple[State | None, ...] = (None, *CODES)  # by code; 0 is not settled
FAILURES = frozenset(
    {
        State.FAILED,
        State.OUT_OF_MEMORY,
        State.TIMEOUT,
        State.NODE_FAIL,
        State.BOOT_FAIL,
        State.PREEMPTED,
        State.DEADLINE,
    }
)
SKIPPED = CODES[State.SKIPPED]
_ANY = sum(1 << code for code in CODES.values())
_SUCCESS = 1 << CODES[State.COMPLETED]
_FAILURE = sum(1 << CODES[state] for state in FAILURES)


def wanted(need: Need, condition: Condition) -> tuple[int, bool]:
    """The accepted states as a mask, and whether all jobs of the need must end so (else one is enough)."""
    if condition is not Condition.NEEDS:
        return _ANY, True
    if need.states:
        return sum(1 << CODES[state] for state in set(need.states) & SETTLED), True
    match need.outcome:
        case Outcome.SUCCESS:
            return _SUCCESS, True
        case Outcome.ANY:
            return _ANY, True
        case Outcome.FAILURE:
            return _FAILURE, False
