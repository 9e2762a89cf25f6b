"""The states of a job and of an attempt, and the moves between them.

One table, and `docs/design/states.md` says the same in words; a test compares the two.
Settled states are final but for correction: late evidence, `aver accept` and `aver retry`
may move a settled job, and each such move is a row of the table like any other.
"""

from enum import StrEnum


class State(StrEnum):
    PENDING = "PENDING"
    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    SETTLING = "SETTLING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    TIMEOUT = "TIMEOUT"
    CHECKPOINTED = "CHECKPOINTED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"
    NODE_FAIL = "NODE_FAIL"
    BOOT_FAIL = "BOOT_FAIL"
    PREEMPTED = "PREEMPTED"
    DEADLINE = "DEADLINE"
    UNVERIFIED = "UNVERIFIED"

    @property
    def is_settled(self) -> bool:
        return self not in UNSETTLED

    @property
    def is_active(self) -> bool:
        """Holds its slot: handed to an engine and not yet settled."""
        return self in ACTIVE


class SchedulerState(StrEnum):
    """What a scheduler may say of an attempt. Each engine translates its own words into these, in one place."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    PRESENT = "PRESENT"  # it has the attempt, and says nothing else that is shown
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    NODE_FAIL = "NODE_FAIL"
    BOOT_FAIL = "BOOT_FAIL"
    PREEMPTED = "PREEMPTED"
    DEADLINE = "DEADLINE"
    UNKNOWN = "UNKNOWN"  # a word that nobody knows: it is quoted, and settles nothing

    @property
    def is_present(self) -> bool:
        """The scheduler has the attempt, and it has not ended."""
        return self in _PRESENT

    @property
    def is_end(self) -> bool:
        return self not in _PRESENT and self is not SchedulerState.UNKNOWN


_PRESENT = frozenset(
    {
        SchedulerState.PENDING,
        SchedulerState.RUNNING,
        SchedulerState.SUSPENDED,
        SchedulerState.COMPLETING,
        SchedulerState.PRESENT,
    }
)

UNSETTLED = frozenset(
    {State.PENDING, State.SUBMITTED, State.RUNNING, State.SUSPENDED, State.COMPLETING, State.SETTLING}
)
ACTIVE = UNSETTLED - {State.PENDING}
STARTED = frozenset({State.RUNNING, State.SUSPENDED, State.COMPLETING})
SETTLED = frozenset(State) - UNSETTLED
ENDED_BY_ENGINE = SETTLED - {State.SKIPPED}

_JOB_AND_ATTEMPT: dict[State, frozenset[State]] = {
    State.PENDING: ACTIVE | ENDED_BY_ENGINE,
    State.SUBMITTED: (ACTIVE | ENDED_BY_ENGINE | {State.PENDING}) - {State.SUBMITTED},
    State.RUNNING: frozenset({State.SUSPENDED, State.COMPLETING, State.SETTLING}) | ENDED_BY_ENGINE,
    State.SUSPENDED: frozenset({State.RUNNING, State.COMPLETING, State.SETTLING}) | ENDED_BY_ENGINE,
    State.COMPLETING: frozenset({State.SETTLING}) | ENDED_BY_ENGINE,
    State.SETTLING: frozenset({State.RUNNING, State.SUSPENDED, State.COMPLETING}) | ENDED_BY_ENGINE,
    State.SKIPPED: frozenset(),
} | {state: ENDED_BY_ENGINE - {state} for state in ENDED_BY_ENGINE}

_JOB_ALONE: dict[State, frozenset[State]] = {state: frozenset({State.PENDING}) for state in State} | {
    State.PENDING: frozenset({State.SKIPPED}),
    State.SUBMITTED: frozenset(),
}

MOVES: dict[State, frozenset[State]] = {state: _JOB_AND_ATTEMPT[state] | _JOB_ALONE[state] for state in State}
ATTEMPT_MOVES: dict[State, frozenset[State]] = _JOB_AND_ATTEMPT


def may_move(before: State, after: State) -> bool:
    """Whether a job may be in `after` next. Staying is allowed: the reason or the usage may have changed."""
    return before is after or after in MOVES[before]


def attempt_may_move(before: State, after: State) -> bool:
    """The same for one attempt, which never starts again and is never SKIPPED."""
    return (before is after and before is not State.SKIPPED) or after in ATTEMPT_MOVES[before]
