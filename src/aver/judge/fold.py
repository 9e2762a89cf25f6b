"""From tasks to a step, from steps and nodes to a job, from jobs to a run.

Pure. What always holds: no fold depends on the order in which its parts were reported (only
the first node of an allocation is special, by its place), an unknown part is never counted
as 0, and tasks that were ended because another one failed do not hide its exit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from aver.judge.local import launch_text
from aver.model.evidence import LaunchFailure, Verdict
from aver.model.exit import CORE_BIT, ExitStatus
from aver.model.reasons import NeedKind, counts_as_success
from aver.model.record import dataclass
from aver.model.signals import signal_name
from aver.model.states import State

OUT_OF_MEMORY_RAW = 125  # Slurm's 0:125: its own code for a step that was out of memory, not a signal
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


@dataclass(frozen=True, slots=True)
class Running:
    """A task that has not ended."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A task whose end nobody saw."""


TaskEnd = Running | Lost | ExitStatus | LaunchFailure


@dataclass(frozen=True, slots=True)
class Task:
    rank: int
    end: TaskEnd
    ended_at: float | None = None
    because_of_another: bool = False  # ended by us since another task failed

    @property
    def exit(self) -> ExitStatus | None:
        """Its exit, a launch failure as its errno, as Slurm has it; None while it runs or if it is lost."""
        match self.end:
            case ExitStatus() as exit_status:
                return exit_status
            case LaunchFailure(errno=errno):
                return ExitStatus(code=errno & 0xFF)
            case _:
                return None

    @property
    def is_failure(self) -> bool:
        return self.exit is not None and not self.exit.is_success and not self.because_of_another


@dataclass(frozen=True, slots=True)
class StepExit:
    exit: ExitStatus | None  # None while a task runs, and if one is lost
    first_failed: int | None  # rank
    srun_code: int | None  # what `srun` itself exits with


def fold_step(tasks: Iterable[Task]) -> StepExit:
    """The step's exit: that of the task with the highest shell code."""
    ranked = sorted(tasks, key=lambda task: task.rank)
    failed = [task for task in ranked if task.is_failure]
    first = min(failed, key=_when, default=None)
    counted = [task.exit for task in ranked if not task.because_of_another]
    all_ends = [task.exit for task in ranked]
    every = _highest(all_ends)
    return StepExit(
        exit=None if None in all_ends else _highest(counted),
        first_failed=first.rank if first else None,
        srun_code=None if every is None or None in all_ends else every.shell_code,
    )


def step_raw(exit_status: ExitStatus | None, state: State) -> int | None:
    """What a step adds to DerivedExitCode: its raw wait status without the core bit; None if nobody saw its exit."""
    if state is State.OUT_OF_MEMORY:
        return OUT_OF_MEMORY_RAW
    return None if exit_status is None else exit_status.wait_status & ~CORE_BIT


def fold_derived(raws: Iterable[int | None]) -> int | None:
    """DerivedExitCode as a raw wait status: the running maximum over the steps, 0 without any.

    None if a step's share is unknown: it may have been higher than all that are known.
    """
    highest = 0
    for raw in raws:
        if raw is None:
            return None
        highest = max(highest, raw & ~CORE_BIT)
    return highest


def fold_nodes(nodes: Sequence[ExitStatus | None]) -> ExitStatus | None:
    """A job's exit from its nodes, in the order of the allocation. None is a node that never reported."""
    if not nodes or nodes[0] is not None:
        return nodes[0] if nodes else None
    reported = [node for node in nodes if node is not None]
    signalled = [node for node in reported if node.signal]
    return max(signalled or reported, key=lambda node: (node.signal, node.code, node.core), default=None)


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
    verdict: Verdict, out_of_memory: int = OUT_OF_MEMORY_RETURN_CODE, timeout: int = TIMEOUT_RETURN_CODE
) -> int | None:
    """What a shell would show: code, or 128+signal; None where no exit is known."""
    if verdict.state is State.OUT_OF_MEMORY:
        return out_of_memory
    if verdict.state is State.TIMEOUT:
        return timeout
    return None if verdict.exit is None else verdict.exit.shell_code


def task_summary(step: str, tasks: Iterable[Task]) -> str:
    """The Task Exit Code Summary of a step such as `7.0`; several lines, no newline at the end."""
    ranked = sorted(tasks, key=lambda task: task.rank)
    first = fold_step(ranked).first_failed
    kinds = Counter(_kind(task) for task in ranked)
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in _KINDS if kinds[kind])
    noun = "task" if len(ranked) == 1 else "tasks"
    groups: dict[tuple[int, str], list[int]] = {}
    for task in ranked:
        groups.setdefault((_place(task), _outcome(task, first)), []).append(task.rank)
    rows = [(ranks, text) for (place, text), ranks in sorted(groups.items(), key=lambda row: (row[0][0], row[1][0]))]
    width = max((len(_ranks(ranks)) for ranks, _ in rows), default=0) + 4
    lines = [f"  {'tasks' if len(ranks) > 1 else 'task '} {_ranks(ranks):<{width}}{text}" for ranks, text in rows]
    return "\n".join([f"Task Exit Code Summary: step {step}, {len(ranked)} {noun}: {counts}".rstrip(": "), *lines])


_KINDS = ("completed", "failed", "signalled", "ended", "running", "lost")


def _when(task: Task) -> tuple[float, int]:
    return (float("inf") if task.ended_at is None else task.ended_at, task.rank)


def _highest(exits: Iterable[ExitStatus | None]) -> ExitStatus | None:
    known = [exit_status for exit_status in exits if exit_status is not None]
    return max(known, key=lambda end: (end.shell_code, end.signal, end.core), default=None)


def _kind(task: Task) -> str:
    match task.end:
        case Running():
            return "running"
        case Lost():
            return "lost"
        case ExitStatus(signal=signal) if not task.because_of_another:
            return "signalled" if signal else "failed" if task.is_failure else "completed"
        case _:
            return "ended" if task.because_of_another else "failed"


def _place(task: Task) -> int:
    """Failures first, then what is still open, then what went well."""
    return {"running": 2, "lost": 1, "ended": 1, "completed": 3}.get(_kind(task), 0)


def _outcome(task: Task, first_failed: int | None) -> str:
    kind = _kind(task)
    match task.end:
        case LaunchFailure() as launch:
            return f"could not start: {launch_text(launch)}"
        case ExitStatus() if kind == "ended":
            return "ended because another task failed" if first_failed is None else f"ended: task {first_failed} failed"
        case ExitStatus(signal=signal, core=core) if signal:
            return f"terminated by signal {signal} ({signal_name(signal)}{', core dumped' if core else ''})"
        case ExitStatus(code=code) if code:
            return f"failed with exit code {code}"
        case Lost():
            return "lost: nobody saw how it ended"
        case _:
            return kind


def _ranks(ranks: Sequence[int]) -> str:
    """`0,2,4-7`: three and more in a row are written as a range."""
    parts: list[str] = []
    at = 0
    while at < len(ranks):
        end = at
        while end + 1 < len(ranks) and ranks[end + 1] == ranks[end] + 1:
            end += 1
        if end - at >= 2:
            parts.append(f"{ranks[at]}-{ranks[end]}")
        else:
            parts.extend(str(rank) for rank in ranks[at : end + 1])
        at = end + 1
    return ",".join(parts)
