"""From jobs to a run: its state, and the exit statuses that commands give for a state.

Pure. No fold depends on the order in which its parts were reported, and an unknown part never counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from aver.model.exit import ExitStatus
from aver.model.reasons import NeedKind, counts_as_success
from aver.model.states import State

OUT_OF_MEMORY_RETURN_CODE = 137
TIMEOUT_RETURN_CODE = 152

WORST_FIRST = (
    State.OUT_OF_MEMORY,
    State.FAILED,
    State.DEADLINE,
    State.NODE_FAIL,
    State.BOOT_FAIL,
    State.PREEMPTED,
    State.TIMEOUT,
    State.CANCELLED,
    State.UNVERIFIED,
    State.CHECKPOINTED,
)

_EXIT_STATUSES = {
    State.COMPLETED: 0,
    State.FAILED: 1,
    State.TIMEOUT: 3,
    State.OUT_OF_MEMORY: 4,
    State.CANCELLED: 5,
    State.NODE_FAIL: 6,
    State.BOOT_FAIL: 6,
    State.PREEMPTED: 6,
    State.DEADLINE: 6,
    State.UNVERIFIED: 7,
    State.CHECKPOINTED: 8,
    State.SKIPPED: 9,
}


def fold_run(jobs: Iterable[tuple[State, str]]) -> State:
    """The state of many jobs, each with its state and reason.

    Not settled before all are: PENDING while none has begun, then RUNNING. A SKIPPED job adds nothing, since its
    need decides; SKIPPED comes out only where no such need is among the jobs, so that it never looks like success.
    """
    settled: set[State] = set()
    unsettled: set[State] = set()
    skipped_for: set[str] = set()
    for state, reason in jobs:
        if not state.is_settled:
            unsettled.add(state)
        elif state is State.SKIPPED and not counts_as_success(reason):
            skipped_for.add(reason)
        else:
            settled.add(State.COMPLETED if state is State.SKIPPED else state)
    if unsettled:
        return State.RUNNING if settled or unsettled != {State.PENDING} else State.PENDING
    for state in WORST_FIRST:
        if state in settled:
            return state
    follows = all(reason.startswith(f"{NeedKind.SKIPPED}:") for reason in skipped_for)
    return State.COMPLETED if not skipped_for or (settled and follows) else State.SKIPPED


def exit_status_of(state: State) -> int:
    """The exit status of `aver run` and `aver watch --exit-status` for a settled state."""
    if state not in _EXIT_STATUSES:
        raise ValueError(f"{state} is not settled: it has no exit status")
    return _EXIT_STATUSES[state]


def return_code(
    state: State,
    ended: ExitStatus | None,
    out_of_memory: int = OUT_OF_MEMORY_RETURN_CODE,
    timeout: int = TIMEOUT_RETURN_CODE,
) -> int | None:
    """What a shell would show: code, or 128+signal; None where no exit is known, or the state is not settled."""
    if state is State.OUT_OF_MEMORY:
        return out_of_memory
    if state is State.TIMEOUT:
        return timeout
    return None if ended is None or not state.is_settled else ended.shell_code
