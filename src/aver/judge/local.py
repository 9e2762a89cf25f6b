"""Decide what the evidence supports.

Pure: no clock, no IO. Never returns COMPLETED without a named source that attests exit 0.
The order of causes is that of OUTCOMES 2; docs/design/verdicts.md has the rules in words.

What always holds: a witness's record beats every other source, whenever it comes. A person's
word counts only where nobody saw the end. Nothing that was seen to start is judged as never
having run. While the evidence may still grow, there is no verdict.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import assert_never

from aver.judge.files import missing_input, with_files
from aver.model import reasons
from aver.model.evidence import (
    Accepted,
    AccountingSaid,
    Act,
    ActKind,
    CancelledBefore,
    CancelUnheard,
    DeadlinePassed,
    DependencyFailed,
    Evidence,
    GeneratedRead,
    HeldBack,
    LaunchFailure,
    LeftQueue,
    LimitMoved,
    LimitPassed,
    LookBegan,
    MachineRestarted,
    MemoryWatch,
    NeedsUnmet,
    NeverSeen,
    NobodySaid,
    NotTaken,
    QueueSaid,
    RecordIsLate,
    Refused,
    Resumed,
    RoomTaken,
    Rules,
    StartedAgain,
    Stop,
    Stopping,
    Suspended,
    Taken,
    Verdict,
    WitnessRecord,
    WitnessStart,
    WitnessVanished,
)
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.signals import signal_name
from aver.model.states import State
from aver.model.units import KIB, MIB

WITNESS = "witness"
MACHINE = "machine"
PERSON = "person"
COORDINATOR = "coordinator"
ENGINE = "engine"

NOT_OURS = ", and it is not yours alone: move it away, or submit from another folder"
BEYOND = "no limit of the job was reached: the machine, or a container around it, ran out of memory"
OOMD = "systemd-oomd ended all processes in its cgroup"
NeverRan = Refused | CancelledBefore | DeadlinePassed | NeedsUnmet | DependencyFailed


def judge(evidence: Sequence[Evidence], rules: Rules) -> Verdict | None:
    """Return the verdict on one attempt that the evidence supports, or None while it may still grow."""
    return with_generated(_judge_end(evidence, rules), evidence)


def with_generated(verdict: Verdict | None, evidence: Sequence[Evidence]) -> Verdict | None:
    """The verdict on an attempt of which it may be known what became of the jobs that it generated.

    A completion whose jobs could not be added is none: what needs it would run without them.
    """
    read = next((said for said in reversed(evidence) if isinstance(said, GeneratedRead)), None)
    if verdict is None or verdict.state is not State.COMPLETED or read is None or not read.problem:
        return verdict
    state, reason = State.FAILED, reasons.GENERATED_JOBS
    if read.is_cancelled:
        state, reason = State.CANCELLED, reasons.NONE
    return Verdict(state, verdict.exit, reason, verdict.verified, COORDINATOR, verdict.warnings, read.problem)


def _judge_end(evidence: Sequence[Evidence], rules: Rules) -> Verdict | None:
    """How the attempt itself ended."""
    start: WitnessStart | None = None
    record: WitnessRecord | None = None
    vanished: WitnessVanished | None = None
    restarted: MachineRestarted | None = None
    stopping: Stopping | None = None
    never_ran: NeverRan | None = None
    accepted: Accepted | None = None
    records_differ = False
    for said in evidence:
        match said:
            case WitnessRecord():
                records_differ = records_differ or (record is not None and record != said)
                record = record or said
            case WitnessStart():
                start = start or said
            case WitnessVanished():
                vanished = vanished or said
            case MachineRestarted():
                restarted = restarted or said
            case Stopping():
                stopping = stopping or said
            case Refused() | CancelledBefore() | DeadlinePassed() | NeedsUnmet() | DependencyFailed():
                never_ran = never_ran or said
            case Accepted():
                accepted = said
            case LimitMoved() | LimitPassed() | Suspended() | Resumed() | LookBegan():
                pass  # no end: the record has it
            case (
                Taken()
                | HeldBack()
                | CancelUnheard()
                | NotTaken()
                | RoomTaken()
                | QueueSaid()
                | StartedAgain()
                | LeftQueue()
                | AccountingSaid()
                | RecordIsLate()
                | NobodySaid()
                | NeverSeen()
            ):
                pass  # of a scheduler: judge.scheduler
            case GeneratedRead():
                pass  # of what it left, not of how it ended
            case _:
                assert_never(said)
    if record is not None:
        verdict = judge_record(record, rules)
        if stopping is not None and was_ended_by_stop(record):
            verdict = _judge_stopped(stopping, record, verdict)
        if records_differ:
            warning = "its witness wrote two records that differ; the first one counts"
            verdict = replace(verdict, warnings=(*verdict.warnings, warning))
        return verdict
    if never_ran is not None and start is None:
        return judge_unstarted(never_ran)
    if restarted is None and vanished is None:
        return None
    if accepted is not None:
        return _judge_accepted(accepted)
    if stopping is not None:
        return Verdict(State.NODE_FAIL, None, reasons.NODE_DOWN, True, MACHINE, (), _STOPPED[stopping.stop])
    if restarted is not None:
        return _judge_restarted(restarted)
    assert vanished is not None
    return _judge_vanished(vanished)


def judge_unstarted(said: NeverRan) -> Verdict:
    """The verdict on a job that never ran."""
    match said:
        case Refused(text=text):
            return Verdict(State.FAILED, None, reasons.JOB_LAUNCH_FAILURE, True, ENGINE, (), text)
        case CancelledBefore(pending_reason=reason):
            detail = cancelled_words(said)
            return Verdict(State.CANCELLED, None, reason or reasons.NONE, True, COORDINATOR, (), detail)
        case DeadlinePassed(text=text):
            detail = f"its deadline can't be kept: {text}" if text else "its deadline passed before it started"
            return Verdict(State.DEADLINE, None, reasons.DEADLINE, True, COORDINATOR, (), detail)
        case NeedsUnmet(reason=reason, text=text):
            return Verdict(State.SKIPPED, None, reason, True, COORDINATOR, (), text)
        case DependencyFailed():
            reason = reasons.DEPENDENCY_NEVER_SATISFIED
            detail = "a job that it was to run after can no longer end as required"
            return Verdict(State.CANCELLED, None, reason, True, COORDINATOR, (), detail)
        case _:
            assert_never(said)


def is_unseen(state: State, exit_status: ExitStatus | None) -> bool:
    """Whether nobody saw the end, so that a person may say how it ended."""
    return state is State.UNVERIFIED or (state is State.NODE_FAIL and exit_status is None)


def judge_acceptance(verdict: Verdict, accepted: Accepted, read: GeneratedRead) -> Verdict | None:
    """A person's word on an attempt of this machine that has this verdict; None where somebody saw how it ended.

    `read` is what became of the jobs that it generated.
    """
    return with_generated(_judge_accepted(accepted), [read]) if is_unseen(verdict.state, verdict.exit) else None


def judge_record(record: WitnessRecord, rules: Rules) -> Verdict:
    """The verdict on an attempt whose witness saw its end. The quick way for the usual case: one record."""
    verdict = _judge_exit(record, rules)
    return with_files(verdict, record.files, rules) if record.files is not None or rules.must_write else verdict


def _judge_exit(record: WitnessRecord, rules: Rules) -> Verdict:
    """The end, without what it wrote."""
    if record.exit is None:
        return _judge_launch(record)
    exit_status = record.exit
    warnings = _warnings(record)
    is_plain = not record.acts and not record.oom_kills and not record.left_over and not warnings
    if exit_status.is_success and is_plain and not rules.is_step_warned and not _is_over_time(record):
        return _CLEAN
    if record.oom_kills or record.oomd_kills or _first(record, ActKind.MEMORY):
        if not (rules.oom_warns and exit_status.is_success):
            return _witnessed(State.OUT_OF_MEMORY, exit_status, reasons.OUT_OF_MEMORY, record, warnings)
        warnings = (_memory_warning(record), *warnings)
    ended = _first(record, ActKind.TIME, ActKind.JOB_TIME, ActKind.CANCEL)
    if (ended is None and _is_over_time(record)) or (ended is not None and ended.kind is ActKind.TIME):
        return _witnessed(State.TIMEOUT, exit_status, late_reason(record.started_at, rules), record, warnings)
    if ended is not None:
        reason = reasons.TIME_LIMIT if ended.kind is ActKind.JOB_TIME else reasons.NONE
        return _witnessed(State.CANCELLED, exit_status, reason, record, warnings)
    if exit_status.signal:
        return _witnessed(State.FAILED, exit_status, reasons.raised_signal(exit_status.signal), record, warnings)
    if exit_status.code in rules.checkpoint_codes:
        if rules.is_step_warned or _was_warned(record, exit_status):
            return _witnessed(State.CHECKPOINTED, exit_status, reasons.CHECKPOINT, record, warnings)
        if record.warned is not None and record.warned.unseen:
            unseen = warnings if exit_status.code else (*warnings, UNSEEN_WARNING)  # a code is the program's own word
            return _witnessed(State.CHECKPOINTED, exit_status, reasons.CHECKPOINT, record, unseen)
        warnings = (*warnings, *_blocked_warning(record))
    if exit_status.code:
        return _witnessed(State.FAILED, exit_status, reasons.NON_ZERO_EXIT_CODE, record, warnings)
    if rules.overrun_fails and (overrun := _overrun(record)):
        others = tuple(one for one in warnings if one != overrun)
        return Verdict(State.FAILED, exit_status, reasons.MEMORY_OVERRUN, True, WITNESS, others, overrun)
    return _witnessed(State.COMPLETED, exit_status, reasons.NONE, record, warnings)


def late_reason(started_at: float | None, rules: Rules) -> str:
    """What ended a job that was out of time: its own time limit, or its deadline if that came first."""
    if rules.deadline_at is None or started_at is None:
        return reasons.TIME_LIMIT
    is_own = rules.time_limit_s is not None and started_at + rules.time_limit_s <= rules.deadline_at
    return reasons.TIME_LIMIT if is_own else reasons.DEADLINE


def launch_text(launch: LaunchFailure) -> str:
    """`exec /no/such: No such file or directory (errno 2)`."""
    what = f"{launch.operation} {launch.path}".rstrip()
    hint = NOT_OURS if launch.errno == errno.EEXIST else ""
    return f"{what}: {os.strerror(launch.errno)} (errno {launch.errno}){hint}"


_CLEAN = Verdict(State.COMPLETED, ExitStatus(), reasons.NONE, verified=True, source=WITNESS)


def _first(record: WitnessRecord, *kinds: ActKind) -> Act | None:
    return next((act for act in record.acts if act.kind in kinds), None)


def _is_over_time(record: WitnessRecord) -> bool:
    """Its witness acts on a limit that passed; whatever kept it from that, the times are in the record."""
    limit_s = record.time_limit_s
    return limit_s is not None and record.elapsed_s - record.suspended_s >= limit_s


def _was_warned(record: WitnessRecord, exit_status: ExitStatus) -> bool:
    """Whether a process got its warning. One that ended as it was sent may have finished its work.

    One that had it blocked may have seen that it is pending: an agreed code other than 0 says so, 0 says nothing.
    """
    warned = record.warned
    return warned is not None and (warned.reached != 0 or bool(warned.blocked and exit_status.code))


UNSEEN_WARNING = (
    "the warning signal went to an srun whose tasks have no witness: whether one of them took it is not known; "
    "it counts as a checkpoint, since the work may not be finished"
)


def _blocked_warning(record: WitnessRecord) -> tuple[str, ...]:
    blocked = 0 if record.warned is None else record.warned.blocked
    if not blocked:
        return ()
    who = "a process" if blocked == 1 else f"{blocked} processes"
    text = f"{who} of it had the warning signal blocked and did not take it"
    return (f"{text}: exit 0 counts as the end, not as a checkpoint",)


def _warnings(record: WitnessRecord) -> tuple[str, ...]:
    """What its verdict alone does not say, and every surface must."""
    noted = record.stays or record.inner_oom_kills or record.around_oom_kills or record.refused_forks
    if not noted and record.limit_bytes is None:
        return ()
    overrun = _overrun(record)
    said = [overrun] if overrun else []
    if record.inner_oom_kills:
        kills = _counted(record.inner_oom_kills, "process", "processes")
        said.append(f"the kernel killed {kills} for the memory limit of a cgroup that the job itself made")
    if record.around_oom_kills and not _first(record, ActKind.MEMORY):
        kills = _counted(record.around_oom_kills, "process", "processes")
        whose = "it was one" if record.around_oom_kills == 1 else "any was one"
        said.append(
            f"the kernel killed {kills} for memory around the job, which has no cgroup of its own: "
            f"whether {whose} of the job's is unknown"
        )
    if record.refused_forks:
        times = _counted(record.refused_forks, "time", "times")
        said.append(f"could not start a process {times}: it had as many as max_processes of the settings allows")
    if record.stays:
        said.append(_stays(record.stays))
    return tuple(said)


def _overrun(record: WitnessRecord) -> str:
    """The peak over a limit that nobody enforced; empty: there is none."""
    highest = record.highest
    is_over = record.limit_bytes is not None and highest is not None and highest[0] > record.limit_bytes
    if not is_over or record.watch is not MemoryWatch.SAMPLED or _first(record, ActKind.MEMORY):
        return ""
    assert highest is not None
    whose = " of its largest process" if highest[1] else ""
    used = f"peak {_size(highest[0])}{whose} of {_size(record.limit_bytes or 0)}"
    return f"exceeded its memory limit: {used}; the limit could not be enforced here"


def _stays(count: int) -> str:
    return f"{_counted(count, 'process', 'processes')} of it could not be ended and may still run"


def _size(count: int) -> str:
    """`96 MiB`, `1.5 MiB`, `12 KiB`: no two sizes of a comparison look alike unless they are nearly so."""
    amount, unit = (count / MIB, "MiB") if count >= MIB else (count / KIB, "KiB")
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _witnessed(
    state: State, exit_status: ExitStatus, reason: str, record: WitnessRecord, warnings: tuple[str, ...] = ()
) -> Verdict:
    return Verdict(state, exit_status, reason, True, WITNESS, warnings, _detail(state, record))


def _detail(state: State, record: WitnessRecord) -> str:
    """Facts that explain and do not decide."""
    facts = ["its job's time limit passed"] if _first(record, ActKind.JOB_TIME) else []
    if state is State.OUT_OF_MEMORY and record.beyond_oom_kills:
        facts.append(BEYOND)
    if state is State.OUT_OF_MEMORY and record.oomd_kills and not record.oom_kills:
        facts.append(OOMD)
    if state is State.FAILED and record.exit is not None and record.exit.signal:
        facts += [_sent(act) for act in record.acts if (act.kind, act.signal) == (ActKind.SIGNAL, record.exit.signal)]
        if record.exit.signal in record.got:
            facts.append(f"its witness was sent {signal_name(record.exit.signal)} and passed it on")
        if record.exit.signal == 9 and record.host_oom_kills > record.around_oom_kills:
            facts.append("the kernel killed for memory elsewhere on this machine meanwhile: a hint, not a cause")
    if record.left_over:
        noun = "process" if record.left_over == 1 else "processes"
        facts.append(f"it left {record.left_over} {noun} behind, ended by its witness")
    return "; ".join(facts)


def _sent(act: Act) -> str:
    if act.last_s is None:
        return f"{signal_name(act.signal)} was sent by request {act.at_s:.1f} s after its start"
    return f"{signal_name(act.signal)} was sent by request {act.times} times, last {act.last_s:.1f} s after its start"


def _memory_warning(record: WitnessRecord) -> str:
    if record.oomd_kills and not record.oom_kills:
        return "systemd-oomd killed processes of it for memory, and the script still exited 0 (oom: warn)"
    if not record.oom_kills:
        return "its witness killed for memory, and the script still exited 0 (oom: warn)"
    times = "once" if record.oom_kills == 1 else f"{record.oom_kills} times"
    return f"the kernel killed a process of it for memory {times}, and the script still exited 0 (oom: warn)"


def _judge_launch(record: WitnessRecord) -> Verdict:
    if record.launch is None:
        detail = "its witness's record has neither a wait status nor a launch failure; exit code unknown"
        return Verdict(State.UNVERIFIED, None, reasons.NONE, False, WITNESS, (), detail)
    if record.launch.operation == "input":
        return missing_input(record.launch)
    return Verdict(State.FAILED, None, reasons.JOB_LAUNCH_FAILURE, True, WITNESS, (), launch_text(record.launch))


def cancelled_words(said: CancelledBefore) -> str:
    """`cancelled by alice before it started`."""
    return f"cancelled by {said.by} before {said.before}"


def _judge_accepted(accepted: Accepted) -> Verdict:
    """A person's word. Not verified: it is believed, and every surface says whose word it is."""
    detail = f"accepted as {accepted.exit} by {accepted.by}; no witness saw how it ended"
    if accepted.exit.is_success:
        state, reason = State.COMPLETED, reasons.NONE
    elif accepted.exit.signal:
        state, reason = State.FAILED, reasons.raised_signal(accepted.exit.signal)
    else:
        state, reason = State.FAILED, reasons.NON_ZERO_EXIT_CODE
    return Verdict(state, accepted.exit, reason, False, PERSON, (), detail)


_STOPPED = {
    Stop.SHUTDOWN: "ended when the machine was shut down",
    Stop.LOGOUT: "ended when its user logged out",
}
_STOP_SIGNALS = frozenset({1, 9, 15})


def was_ended_by_stop(record: WitnessRecord) -> bool:
    """Whether the end is one that a stop of everything around the attempt explains.

    Its witness got the signal too, or the program died of one that service managers send; and nobody asked its witness
    to end it or to send it one.
    """
    if any(act.kind is not ActKind.WARN for act in record.acts) or record.oom_kills:
        return False
    return not _STOP_SIGNALS.isdisjoint(record.got) or (record.exit is not None and record.exit.signal in _STOP_SIGNALS)


def _judge_stopped(stopping: Stopping, record: WitnessRecord, verdict: Verdict) -> Verdict:
    """What the stop ended is lost, whatever the program made of the signal; other causes stay what they are."""
    if verdict.state not in (State.FAILED, State.COMPLETED) or record.exit is None:
        return verdict
    return replace(verdict, state=State.NODE_FAIL, reason=reasons.NODE_DOWN, detail=_STOPPED[stopping.stop])


def _judge_restarted(restarted: MachineRestarted) -> Verdict:
    seen = "while it ran" if restarted.was_seen_running else "before it was seen to run"
    detail = f"the machine was restarted {seen}; exit code unknown"
    return Verdict(State.NODE_FAIL, None, reasons.NODE_DOWN, True, MACHINE, (), detail)


def _judge_vanished(vanished: WitnessVanished) -> Verdict:
    who = "its witness" if vanished.witness_pid is None else f"its witness (pid {vanished.witness_pid})"
    is_lost = vanished.is_unreadable
    detail = f"what {who} wrote of its end can't be read" if is_lost else f"{who} vanished without a record"
    detail += "; exit code unknown"
    if vanished.swept:
        noun = "process" if vanished.swept == 1 else "processes"
        detail += f"; {vanished.swept} {noun} of the job ended afterwards"
    warnings = (_stays(vanished.stays),) if vanished.stays else ()
    if vanished.oomd_kills:
        detail = f"{OOMD}, {who} among them; exit code unknown"
        return Verdict(State.OUT_OF_MEMORY, None, reasons.OUT_OF_MEMORY, True, MACHINE, warnings, detail)
    return Verdict(State.UNVERIFIED, None, reasons.WITNESS_VANISHED, False, COORDINATOR, warnings, detail)
