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


UNSETTLED = frozenset(
    {State.PENDING, State.SUBMITTED, State.RUNNING, State.SUSPENDED, State.COMPLETING, State.SETTLING}
)
ACTIVE = UNSETTLED - {State.PENDING}
SETTLED = frozenset(State) - UNSETTLED
ENDED_BY_ENGINE = SETTLED - {State.SKIPPED}
