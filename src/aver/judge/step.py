"""The verdict on a task and on a step, and what steps and nodes make of a job's exit.

Pure. What always holds: no fold depends on the order in which its parts were reported (only
the first node of an allocation is special, by its place), an unknown part is never counted
as 0, and tasks that were ended because another one failed do not hide its exit. Where none failed (`--wait`), those
that were ended count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from aver.judge.local import COORDINATOR, ENGINE, WITNESS, judge, launch_text
from aver.model import reasons
from aver.model.evidence import ActKind, Evidence, LaunchFailure, Rules, TaskCause, Verdict, WitnessRecord
from aver.model.exit import CORE_BIT, ExitStatus
from aver.model.record import Record, replace
from aver.model.signals import signal_name
from aver.model.states import State

UNCOUNTED = "nobody said how many tasks it has; this is the worst of those that were seen"
MOST_STEP_WARNINGS = 5  # of a job
OUT_OF_MEMORY_RAW = 125  # Slurm's 0:125: its own code for a step that was out of memory, not a signal


class Running(Record):
    """A task that has not ended."""


class Lost(Record):
    """A task whose end nobody saw."""


class NotBegun(Record):
    """A task that was ended before it was handed over, or that its engine refused: nothing ran, nothing is unknown."""

    is_refused: bool = False


TaskEnd = Running | Lost | NotBegun | ExitStatus | LaunchFailure
TERMINATED_CODE = 143  # what `srun` exits with when its tasks were ended by TERM
REFUSED_CODE = 1  # what `srun` exits with when nothing could be started, and there is no errno


class Task(Record):
    rank: int
    end: TaskEnd
    ended_at: float | None = None
    because_of_another: bool = False  # ended by us since another task failed, or so long after another's end (--wait)

    @property
    def exit(self) -> ExitStatus | None:
        """Its exit, a launch failure as its errno, as Slurm has it; None if it runs, is lost or never began."""
        match self.end:
            case ExitStatus() as exit_status:
                return exit_status
            case LaunchFailure(errno=errno):
                return ExitStatus(code=errno & 0xFF)
            case _:
                return None

    @property
    def is_unknown(self) -> bool:
        return isinstance(self.end, (Running, Lost))

    @property
    def srun_code(self) -> int:
        """What it makes `srun` exit with, once it has ended; one that never began as if it had been ended at once."""
        match self.end:
            case NotBegun(is_refused=is_refused):
                return TERMINATED_CODE if self.because_of_another else REFUSED_CODE if is_refused else 0
            case _:
                return 0 if self.exit is None else self.exit.shell_code

    @property
    def is_failure(self) -> bool:
        return self.exit is not None and not self.exit.is_success and not self.because_of_another


class StepExit(Record):
    exit: ExitStatus | None  # None while a task runs, and if one is lost
    first_failed: int | None  # rank
    srun_code: int | None  # what `srun` itself exits with


def fold_step(tasks: Iterable[Task]) -> StepExit:
    """The step's exit: that of the task with the highest shell code."""
    ranked = sorted(tasks, key=lambda task: task.rank)
    failed = [task for task in ranked if task.is_failure]
    first = min(failed, key=_when, default=None)
    counted = [task.exit for task in ranked if not task.because_of_another]
    is_unknown = not ranked or any(task.is_unknown for task in ranked)
    code = max((task.srun_code for task in ranked), default=0)
    have_all_begun = not any(isinstance(task.end, NotBegun) for task in ranked)
    return StepExit(
        exit=None if is_unknown else _highest(counted),
        first_failed=first.rank if first else None,
        srun_code=None if is_unknown else code if have_all_begun else max(code, REFUSED_CODE),
    )


class TaskRules(Record):
    """What is known of a task beside its evidence."""

    is_ended_by_scheduler: bool = False  # its witness was sent the signal of which the task died


class JudgedTask(Record):
    task: Task
    verdict: Verdict | None  # None while it runs


class StepVerdict(Record):
    verdict: Verdict
    derived: int | None  # its raw share in DerivedExitCode; None if nobody saw its exit
    first_failed: int | None  # rank
    srun_code: int | None  # what `srun` itself exits with


def judge_task(evidence: Sequence[Evidence], rules: TaskRules) -> Verdict | None:
    """The verdict on one task that the evidence supports, or None while it may still grow."""
    verdict = judge(evidence, Rules())
    if verdict is None:
        return None
    if rules.is_ended_by_scheduler and verdict.state is State.FAILED:
        verdict = replace(verdict, state=State.CANCELLED, reason=reasons.NONE)
    record = next((one for one in evidence if isinstance(one, WitnessRecord)), None)
    more = "" if record is None else _task_detail(verdict.state, record)
    return verdict if not more else replace(verdict, detail="; ".join(part for part in (more, verdict.detail) if part))


def task_end(verdict: Verdict | None, cause: TaskCause) -> TaskEnd:
    """How the task ended, for the fold and the summary; it runs while there is no verdict."""
    if verdict is None:
        return Running()
    return verdict.exit or cause.launch or not_begun(verdict.state, verdict.source) or Lost()


def not_begun(state: State, source: str) -> NotBegun | None:
    """By the verdict on a task without an exit: whether it never began."""
    if state is State.CANCELLED and source == COORDINATOR:
        return NotBegun()
    return NotBegun(is_refused=True) if state is State.FAILED and source == ENGINE else None


def task_cause(record: WitnessRecord) -> TaskCause:
    """What the record says of the task's end beside its exit status."""
    signal = 0 if record.exit is None else record.exit.signal
    sent = {act.signal for act in record.acts if act.kind in (ActKind.SIGNAL, ActKind.WARN)}
    was_sent = bool(signal) and (signal in sent or signal in record.got)
    is_warned = record.warned is not None and record.warned.reached != 0
    return TaskCause(record.launch, record.oom_kills, was_sent, is_warned)


def judge_step(tasks: Sequence[JudgedTask], is_open: bool) -> StepVerdict:
    """The verdict on a step whose tasks have all ended; `is_open`: nobody said how many tasks it has."""
    counted = _counted(tasks)
    folded = fold_step(one.task for one in counted)
    if counted is not tasks:  # no task failed
        folded = replace(folded, first_failed=None)
    warnings = [(one.task.rank, said) for one in tasks if one.verdict is not None for said in one.verdict.warnings]
    verdict = _judge_step(counted, folded, is_open)
    if warnings:
        verdict = replace(verdict, warnings=tuple(f"task {rank}: {said}" for rank, said in warnings))
    code = 1 if verdict.state is State.OUT_OF_MEMORY else folded.srun_code  # 1 as Slurm's srun
    never_began = all(one.verdict is not None and _never_began(one.verdict) for one in tasks)
    derived = 0 if never_began else step_raw(verdict.exit, verdict.state)
    return StepVerdict(verdict, derived, folded.first_failed, code)


def _counted(tasks: Sequence[JudgedTask]) -> Sequence[JudgedTask]:
    """The tasks, those that were ended after another's end as any other where all others completed."""
    own = [one.verdict for one in tasks if not one.task.because_of_another]
    if len(own) == len(tasks) or any(verdict is None or verdict.state is not State.COMPLETED for verdict in own):
        return tasks
    return [JudgedTask(replace(one.task, because_of_another=False), one.verdict) for one in tasks]


def with_step_warnings(verdict: Verdict, said: Sequence[str]) -> Verdict:
    """The verdict on a job with the warnings of its steps, which their exits do not show.

    Those beyond the first few are counted.
    """
    if not said:
        return verdict
    more = len(said) - MOST_STEP_WARNINGS
    counted = (f"{more} more of its steps",) if more > 0 else ()
    return replace(verdict, warnings=(*verdict.warnings, *said[:MOST_STEP_WARNINGS], *counted))


def as_own_step(verdict: Verdict, step_was_out_of_memory: bool) -> Verdict:
    """The verdict on a job that is one step, made by `srun`: memory that its step lacked is memory that it lacked.

    Its script, the srun, exits with 1 then, and that alone would not say why.
    """
    if not step_was_out_of_memory or verdict.state not in (State.COMPLETED, State.FAILED):
        return verdict
    detail = "its step was out of memory"
    return replace(verdict, state=State.OUT_OF_MEMORY, reason=reasons.OUT_OF_MEMORY, detail=detail)


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


_KINDS = ("completed", "failed", "signalled", "ended", "running", "lost", "not begun")


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
        case NotBegun(is_refused=is_refused):
            return "failed" if is_refused else "not begun"
        case ExitStatus(signal=signal) if not task.because_of_another:
            return "signalled" if signal else "failed" if task.is_failure else "completed"
        case _:
            return "ended" if task.because_of_another else "failed"


def _place(task: Task) -> int:
    """Failures first, then what is still open, then what went well."""
    return {"running": 2, "lost": 1, "ended": 1, "not begun": 1, "completed": 3}.get(_kind(task), 0)


def _outcome(task: Task, first_failed: int | None) -> str:
    kind = _kind(task)
    match task.end:
        case LaunchFailure() as launch:
            return f"could not start: {launch_text(launch)}"
        case ExitStatus() if kind == "ended":
            return "ended: another task had ended" if first_failed is None else f"ended: task {first_failed} failed"
        case ExitStatus(signal=signal, core=core) if signal:
            return f"terminated by signal {signal} ({signal_name(signal)}{', core dumped' if core else ''})"
        case ExitStatus(code=code) if code:
            return f"failed with exit code {code}"
        case Lost():
            return "lost: nobody saw how it ended"
        case NotBegun(is_refused=True):
            return "could not start"
        case NotBegun() if task.because_of_another and first_failed is not None:
            return f"not begun: task {first_failed} failed"
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


def _judge_step(tasks: Sequence[JudgedTask], folded: StepExit, is_open: bool) -> Verdict:
    """Memory, then time, then a cancellation, then its exit. Tasks that were ended because of another don't count."""
    verdicts = [one.verdict for one in tasks if one.verdict is not None and not one.task.because_of_another]
    states = {verdict.state for verdict in verdicts}
    exit_status = folded.exit
    detail = "" if folded.first_failed is None else f"task {folded.first_failed} failed first"
    if is_open:
        detail = "; ".join(text for text in (detail, UNCOUNTED) if text)
    for state in (State.OUT_OF_MEMORY, State.TIMEOUT, State.CANCELLED, State.UNVERIFIED, State.NODE_FAIL):
        if state in states:
            chosen = next(verdict for verdict in verdicts if verdict.state is state)
            return Verdict(state, exit_status, chosen.reason, chosen.verified, chosen.source, (), detail)
    refused = next((verdict for verdict in verdicts if verdict.source == ENGINE), None)
    if refused is not None:
        return Verdict(State.FAILED, None, refused.reason, True, ENGINE, (), refused.detail)
    if exit_status is None:
        return Verdict(State.UNVERIFIED, None, reasons.WITNESS_VANISHED, False, COORDINATOR, (), detail)
    if exit_status.is_success:
        return Verdict(State.COMPLETED, exit_status, reasons.NONE, True, WITNESS, (), detail)
    return Verdict(State.FAILED, exit_status, _failure_reason(verdicts, exit_status), True, WITNESS, (), detail)


def _never_began(verdict: Verdict) -> bool:
    """Whether the task was cancelled before it was handed over: nothing ran, so nothing is unknown."""
    return verdict.exit is None and not_begun(verdict.state, verdict.source) == NotBegun()


def _failure_reason(verdicts: Sequence[Verdict], exit_status: ExitStatus) -> str:
    if any(verdict.reason == reasons.JOB_LAUNCH_FAILURE for verdict in verdicts):
        return reasons.JOB_LAUNCH_FAILURE
    return reasons.raised_signal(exit_status.signal) if exit_status.signal else reasons.NON_ZERO_EXIT_CODE


def _task_detail(state: State, record: WitnessRecord) -> str:
    """What the verdict on an attempt does not say: the kernel's kills, or the warning of which it died."""
    if state is State.OUT_OF_MEMORY and record.oom_kills:
        return f"the kernel killed {record.oom_kills} of its processes for memory"
    if state is State.FAILED and record.exit is not None and record.exit.signal:
        for act in record.acts:
            if act.kind is ActKind.WARN and act.signal == record.exit.signal:
                return f"{signal_name(act.signal)} was sent as its warning {act.at_s:.1f} s after its start"
    return ""
