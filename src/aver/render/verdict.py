"""How verdicts, exits, times and sizes are shown. Every surface shows them through this module.

Pure text: no colours, no tables, no clock. Unknown is `?`, never 0.
"""

from __future__ import annotations

import shlex
from typing import assert_never

from aver.judge.local import BEYOND, MACHINE, launch_text
from aver.model import reasons
from aver.model.evidence import ActKind, Verdict, WitnessRecord
from aver.model.exit import ExitStatus
from aver.model.exit_text import UNKNOWN
from aver.model.exit_text import raw_text as raw_text
from aver.model.job import Request
from aver.model.record import Record
from aver.model.signals import signal_name, signal_words
from aver.model.states import State
from aver.model.units import DAY_S, HOUR_S, MINUTE_S, size_text, time_text

NOTHING = "-"
_NEVER_RAN = frozenset({State.SKIPPED, State.CANCELLED, State.DEADLINE, State.BOOT_FAIL})  # unless it was seen to start
_NEAR = 0.95  # of the limit, where a measurement counts as having reached it


class Piece(Record):
    """What one line of a listing says about a job."""

    state: str
    exit: str
    reason: str
    elapsed: str


def exit_text(exit_status: ExitStatus | None) -> str:
    return UNKNOWN if exit_status is None else str(exit_status)


def exit_words(exit_status: ExitStatus | None) -> str:
    """`exit code 3`, `signal 11 (SIGSEGV, core dumped)`, `an unknown exit`."""
    if exit_status is None:
        return "an unknown exit"
    if exit_status.signal:
        core = ", core dumped" if exit_status.core else ""
        return f"signal {exit_status.signal} ({signal_name(exit_status.signal)}{core})"
    return f"exit code {exit_status.code}"


def reason_text(reason: str) -> str:
    return reason or reasons.NONE


def short_words(state: State, exit_status: ExitStatus | None, reason: str) -> str:
    """What a newcomer reads beside the state: `exit 3`, `needs prep (FAILED)`, `held`; empty if the state is all."""
    if (need := reasons.parse_need_reason(reason)) is not None:
        return f"needs {need.need} ({need.state})"
    if exit_status is not None and state is State.FAILED and reason not in reasons.THOUGH_ZERO:
        return exit_words(exit_status).replace("exit code", "exit")
    if reason in reasons.SAID_BY_STATE or reasons.parse_from_run(reason) is not None:
        return ""
    return reasons.SHORT_WORDS.get(reason, reason)


def state_text(verdict: Verdict) -> str:
    """The state, with a `*` where it is believed and not verified, and a `!` where there are warnings."""
    mark = "!" if verdict.warnings else ""
    return f"{believed_text(verdict.state, verdict.verified)}{mark}{from_text(verdict.reason)}"


def from_text(reason: str | None) -> str:
    """` (from run 12)` behind the state of a job that was taken over; empty for any other."""
    origin = reasons.parse_from_run(reason or "")
    return "" if origin is None else f" (from run {origin.run})"


def believed_text(state: State, verified: bool | None) -> str:
    """The state, with a `*` where it is settled by what somebody believes, and no source attests it."""
    is_believed = verified is False and state.is_settled and state is not State.UNVERIFIED
    return f"{state}*" if is_believed else state.value


def absent_text(state: State, has_begun: bool, reason: str) -> str:
    """What stands for a figure or an exit that is not there: `?` if the job must have had one, `-` if it has none."""
    is_unknown = state.is_settled and reason not in reasons.NOT_STARTED and (has_begun or may_have_run(state, reason))
    return UNKNOWN if is_unknown else NOTHING


def may_have_run(state: State, reason: str) -> bool:
    """Whether an attempt that ended so ran, or may have, though nobody saw it start."""
    is_elsewhere = reasons.parse_from_run(reason) is not None
    return state.is_settled and state not in _NEVER_RAN and reason not in reasons.NOT_STARTED and not is_elsewhere


def piece(verdict: Verdict, elapsed_s: float | None) -> Piece:
    return Piece(
        state_text(verdict),
        exit_text(verdict.exit),
        reason_text(verdict.reason),
        UNKNOWN if elapsed_s is None else elapsed_text(elapsed_s),
    )


def elapsed_text(seconds: float) -> str:
    """Slurm's form: `00:00:41`, `1-02:03:04`."""
    return time_text(max(0, int(seconds)))


def duration_words(seconds: float) -> str:
    """For people: `0.4 s`, `41 s`, `3 min 20 s`, `2 h 5 min`, `1 d 2 h`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return _two(whole, MINUTE_S, "min", 1, "s")
    if whole < DAY_S:
        return _two(whole, HOUR_S, "h", MINUTE_S, "min")
    return _two(whole, DAY_S, "d", HOUR_S, "h")


def bytes_words(size: int) -> str:
    """For people: `512 B`, `2.0 GiB`."""
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        if value < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} EiB"


def limit_words(size: int) -> str:
    """A size that somebody asked for, exact where that is short: `2 GiB`, else as `bytes_words`."""
    exact = size_text(size)
    number, letter = exact[:-1], exact[-1]
    if len(number) > 4:
        return bytes_words(size)
    return f"{number} B" if letter == "B" else f"{number} {letter}iB"


def moved_words(state: State, reason: str) -> str:
    """`PENDING (Resources): it waits for free cpus, memory or gpus`."""
    words = reasons.PENDING_WORDS.get(reason) if state is State.PENDING else None
    if words:
        return f"{state} ({reason}): {words}"
    if origin := from_text(reason):
        return f"{state}{origin}"
    is_bare = state is not State.PENDING and reason in ("", reasons.NONE)
    return str(state) if is_bare else f"{state} ({reason_text(reason)})"


def pending_sentence(reason: str) -> str:
    words = reasons.PENDING_WORDS.get(reason)
    return f"Waiting ({reason_text(reason)}): {words}." if words else f"Waiting: {reason_text(reason)}."


def unsettled_sentence(state: State, reason: str) -> str:
    """What an unsettled job is doing."""
    match state:
        case State.PENDING:
            return pending_sentence(reason)
        case State.RUNNING | State.SUSPENDED | State.COMPLETING if reason == reasons.CANNOT_BE_ENDED:
            return "It can't be ended: KILL was sent, and it lives on."
        case State.SUBMITTED:
            return "Handed to the engine, and not seen to start yet."
        case State.RUNNING:
            return "Running."
        case State.SUSPENDED:
            return "Suspended: it is stopped, and its time limit is paused."
        case State.COMPLETING:
            return "Ending: its processes are being ended."
        case State.SETTLING:
            return "No longer running; how it ended is not confirmed yet."
        case _:
            raise ValueError(f"{state} is settled: its sentence needs its verdict")


def sentence(
    verdict: Verdict, record: WitnessRecord | None = None, request: Request | None = None, by: str | None = None
) -> str:
    """What happened, in one plain sentence. `by` is who cancelled it, where that is known."""
    after = "" if record is None or record.exit is None else f", {duration_words(record.elapsed_s)} after its start"
    match verdict.state:
        case State.COMPLETED if reasons.parse_from_run(verdict.reason) is not None:
            return f"Completed without being run: {verdict.detail}."
        case State.COMPLETED if not verdict.verified:
            return f"Believed to have completed: {verdict.detail}."
        case State.COMPLETED:
            took = "" if record is None else f" after {duration_words(record.elapsed_s)}"
            but = f", but {verdict.warnings[0]}" if verdict.warnings else ""
            return f"Completed with exit code 0{took}{but}."
        case State.FAILED if verdict.reason in reasons.THOUGH_ZERO:
            return f"Failed, though it exited with code 0{after}: {verdict.detail}."
        case State.FAILED:
            return _failed(verdict, record, after)
        case State.OUT_OF_MEMORY:
            return _out_of_memory(verdict, record, request, after)
        case State.TIMEOUT if verdict.reason == reasons.DEADLINE:
            return f"Ended because its deadline passed: it ended with {exit_words(verdict.exit)}{after}."
        case State.TIMEOUT:
            limit = "" if request is None or request.time_s is None else f" of {duration_words(request.time_s)}"
            return f"Ended because its time limit{limit} passed: it ended with {exit_words(verdict.exit)}{after}."
        case State.CHECKPOINTED:
            ended = f"ended as agreed, with {exit_words(verdict.exit)}{after}"
            return f"Checkpointed: it was warned before its time limit and {ended}."
        case State.CANCELLED if verdict.exit is None:
            return f"{_capital(verdict.detail)}." if verdict.detail else f"Cancelled{_by(by)} before it started."
        case State.CANCELLED:
            return f"Cancelled{_by(by)}{_acted(record)}; it ended with {exit_words(verdict.exit)}."
        case State.SKIPPED:
            return _skipped(verdict)
        case State.UNVERIFIED:
            return f"Nobody knows how it ended: {verdict.detail}." if verdict.detail else "Nobody knows how it ended."
        case State.NODE_FAIL | State.BOOT_FAIL | State.PREEMPTED | State.DEADLINE:
            return f"{_capital(verdict.detail or _ENGINE_WORDS[verdict.state])}."
        case State.PENDING | State.SUBMITTED | State.RUNNING | State.SUSPENDED | State.COMPLETING | State.SETTLING:
            return unsettled_sentence(verdict.state, verdict.reason)
        case _:
            assert_never(verdict.state)


def next_steps(
    verdict: Verdict, job: int, record: WitnessRecord | None = None, request: Request | None = None,
    run: int | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """The commands to type next, best first; `run` is the job's, if that is not a single job."""
    recover = f"aver recover {run or job}"
    log, retry = f"aver log {job}", f"aver retry {job}"
    origin = reasons.parse_from_run(verdict.reason)
    match verdict.state:
        case State.COMPLETED if origin is not None:
            return (f"aver why {origin.job}", f"aver log {origin.job}")
        case State.COMPLETED if verdict.warnings:
            return (log, f"aver show {job}")
        case State.COMPLETED | State.CHECKPOINTED:
            return (log,)
        case State.OUT_OF_MEMORY:
            is_helped = _limit(record, request) is not None and not (record and record.beyond_oom_kills)
            return (recover, log) if is_helped else (log, retry)
        case State.TIMEOUT if verdict.reason == reasons.DEADLINE:
            return (log,)
        case State.TIMEOUT:
            return (log,) if request is None or request.time_s is None else (recover, log)
        case State.FAILED if verdict.reason in reasons.NOT_STARTED:
            return (f"aver show {job}", retry)
        case State.FAILED:
            return (log, retry)
        case State.CANCELLED:
            return (log, retry) if verdict.exit is not None else (retry,)
        case State.SKIPPED:
            need = reasons.parse_need_reason(verdict.reason)
            if need is None:
                return (f"aver show {job}",)
            return (f"aver why {shlex.quote(need.need if run is None else f'{run}/{need.need}')}", retry)
        case State.UNVERIFIED:
            return (log, f"aver accept {job}", retry)
        case State.NODE_FAIL | State.BOOT_FAIL | State.PREEMPTED:
            return (retry, log)
        case State.DEADLINE:
            return (f"aver show {job}",)
        case State.PENDING | State.SUBMITTED | State.RUNNING | State.SUSPENDED | State.COMPLETING | State.SETTLING:
            return (f"aver watch {job}",)
        case _:
            assert_never(verdict.state)


_ENGINE_WORDS = {
    State.NODE_FAIL: "the node on which it ran was lost",
    State.BOOT_FAIL: "the node on which it was to run did not start",
    State.PREEMPTED: "the engine ended it to make room for another job",
    State.DEADLINE: "its deadline passed before it could end",
}


def _failed(verdict: Verdict, record: WitnessRecord | None, after: str) -> str:
    if verdict.exit is None and verdict.reason == reasons.JOB_LAUNCH_FAILURE:
        launch = None if record is None else record.launch
        return f"It could not start: {verdict.detail if launch is None else launch_text(launch)}."
    if verdict.reason == reasons.MISSING_INPUT:
        return f"Not started: {verdict.detail}."
    if verdict.exit is None:
        return f"Failed, and its exit code is not known{f': {verdict.detail}' if verdict.detail else ''}."
    if not verdict.verified:
        return f"Believed to have failed: {verdict.detail}."
    because = f" ({verdict.detail})" if verdict.detail else ""
    if verdict.exit.signal:
        core = " (core dumped)" if verdict.exit.core else ""
        number = verdict.exit.signal
        return f"Ended by signal {number}, {signal_name(number)}: {signal_words(number)}{core}{after}{because}."
    return f"Failed with exit code {verdict.exit.code}{after}{because}."


def _out_of_memory(verdict: Verdict, record: WitnessRecord | None, request: Request | None, after: str) -> str:
    if record is None and verdict.source == MACHINE:
        return f"Killed for memory: {verdict.detail}."
    still = f"; {BEYOND}" if record is not None and record.beyond_oom_kills else ""
    if verdict.exit is not None and not verdict.exit.signal:
        still += f"; the script itself ended with {exit_words(verdict.exit)}"
    return f"Killed by {_killer(record)} for memory: {_reached(record, _limit(record, request))}{after}{still}."


def _killer(record: WitnessRecord | None) -> str:
    if record is None or record.oom_kills:
        return "the kernel"
    if any(act.kind is ActKind.MEMORY for act in record.acts):
        return "its witness"
    return "systemd-oomd" if record.oomd_kills else "the kernel"


def _reached(record: WitnessRecord | None, limit: int | None) -> str:
    """What it used. Samples lag behind the kernel, so far below the limit only the measurement is claimed.

    The largest process, mapped files and all, is another measure: it counts only where the peak explains nothing.
    """
    used = 0 if record is None else record.peak_bytes or 0
    if record is not None and (limit is None or used < limit * _NEAR):
        used = max(used, record.maxrss_bytes or 0)
    if limit is None:
        return f"it was last measured at {bytes_words(used)}, with no limit of its own" if used else "it had no limit"
    asked = f"of the {limit_words(limit)} asked for"
    if not used:
        return f"it was never measured, {asked}"
    if used >= limit * _NEAR:
        return f"it reached {bytes_words(min(used, limit) if record and record.oom_kills else used)} {asked}"
    return f"it was last measured at {bytes_words(used)} {asked}"


def _skipped(verdict: Verdict) -> str:
    need = reasons.parse_need_reason(verdict.reason)
    if need is not None:
        return f"Skipped, it never ran: {need.need}, which it needs, is {need.state}."
    if verdict.reason == reasons.CONDITION_NOT_MET:
        return "Skipped, it never ran: its condition did not apply."
    return f"Skipped, it never ran: {reason_text(verdict.reason)}."


def _limit(record: WitnessRecord | None, request: Request | None) -> int | None:
    if record is not None and record.limit_bytes:
        return record.limit_bytes
    return None if request is None else request.mem_bytes


def _acted(record: WitnessRecord | None) -> str:
    acts = () if record is None else record.acts
    act = next((act for act in acts if act.kind is ActKind.CANCEL), None)
    return "" if act is None else f" {duration_words(act.at_s)} after its start"


def _by(who: str | None) -> str:
    return "" if who is None else f" by {who}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _two(seconds: int, large_s: int, large: str, small_s: int, small: str) -> str:
    rest = seconds % large_s // small_s
    return f"{seconds // large_s} {large} {rest} {small}" if rest else f"{seconds // large_s} {large}"
