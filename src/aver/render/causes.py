"""Why the jobs of a run did not complete, grouped by cause, with what to type next.

Pure. A cause is made of verdicts and requests alone; what logs say is added beside it as hints. Every job
that is settled and is not a success is in exactly one cause, so the counts add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aver.judge.run import WORST_FIRST
from aver.model import reasons
from aver.model.exit import ExitStatus
from aver.model.reasons import counts_as_success, parse_need_reason
from aver.model.record import Record
from aver.model.signals import signal_name, signal_words
from aver.model.states import State
from aver.render.verdict import bytes_words, duration_words, limit_words

SHOWN = 5  # numbers of jobs that a cause names
LONGEST_DETAIL = 300


class Failed(NamedTuple):
    """A job that is settled, with the request and the figures of its newest attempt."""

    job: int
    name: str
    state: str
    reason: str
    exit: ExitStatus | None
    detail: str
    attempt: int
    mem_bytes: int | None = None
    time_s: int | None = None
    peak_bytes: int | None = None
    stands_for: int = 1  # jobs alike, itself included


class Cause(Record):
    """`sentence` says how many and why; `jobs` are the first of them; `has_log`: they ran, and may have written."""

    state: State
    sentence: str
    count: int
    jobs: tuple[Failed, ...]
    next: tuple[str, ...]
    has_log: bool


def is_failure(state: str, reason: str) -> bool:
    """Whether a job is settled and is not a success."""
    if state == State.SKIPPED:
        return not counts_as_success(reason)
    return state != State.COMPLETED and State(state).is_settled


def group_causes(run: int, failed: Iterable[Failed]) -> list[Cause]:
    """Group a run's failures by cause: worst state first, then by count; each cause keeps all that it is given."""
    groups: dict[tuple[object, ...], list[Failed]] = {}
    for one in failed:
        groups.setdefault(_key(one), []).append(one)
    causes = [_cause(run, jobs) for jobs in groups.values()]
    return sorted(causes, key=lambda cause: (_rank(cause.state), -cause.count, cause.jobs[0].job))


def _key(one: Failed) -> tuple[object, ...]:
    match State(one.state):
        case State.OUT_OF_MEMORY:
            return (one.state, one.mem_bytes)
        case State.TIMEOUT if one.reason == reasons.DEADLINE:
            return (one.state, one.reason)
        case State.TIMEOUT:
            return (one.state, one.time_s)
        case State.FAILED if one.reason in reasons.THOUGH_ZERO:
            return (one.state, one.reason, one.detail)
        case State.FAILED:
            ended = one.exit
            return (one.state, one.reason, one.detail) if ended is None else (one.state, ended.code, ended.signal)
        case State.SKIPPED:
            need = parse_need_reason(one.reason)
            return (one.state, one.reason if need is None else need.state)
        case State.CANCELLED:
            return (one.state, _has_begun(one))
        case _:
            return (one.state,)


def _rank(state: State) -> int:
    return WORST_FIRST.index(state) if state in WORST_FIRST else len(WORST_FIRST)


def _cause(run: int, jobs: list[Failed]) -> Cause:
    first = jobs[0]
    state = State(first.state)
    has_log = state is not State.SKIPPED and first.attempt > 0 and first.reason not in reasons.NOT_STARTED
    sentence = f"{_who(jobs)} {_what(state, jobs)}"
    return Cause(state, sentence, _count(jobs), tuple(jobs), _next(run, state, first), has_log)


def _count(jobs: list[Failed]) -> int:
    return sum(one.stands_for for one in jobs)


def _who(jobs: list[Failed]) -> str:
    first = jobs[0]
    return f"job {first.job} ({first.name})" if _count(jobs) == 1 else f"{_count(jobs)} jobs"


def _what(state: State, jobs: list[Failed]) -> str:
    first = jobs[0]
    many = _count(jobs) > 1
    match state:
        case State.OUT_OF_MEMORY:
            limit = "" if first.mem_bytes is None else f" at {limit_words(first.mem_bytes)}"
            return f"ran out of memory{limit or ' without a limit of its own'}{_peaks(jobs)}"
        case State.TIMEOUT if first.reason == reasons.DEADLINE:
            return f"passed {'their deadlines' if many else 'its deadline'} while {'they' if many else 'it'} ran"
        case State.TIMEOUT:
            limit = "" if first.time_s is None else f" of {duration_words(first.time_s)}"
            return f"passed {'their' if many else 'its'} time limit{limit}"
        case State.FAILED:
            return _failed(first, many)
        case State.SKIPPED:
            return f"never ran: {_skipped(jobs)}"
        case State.CANCELLED:
            when = "" if _has_begun(first) else " before the start"
            return f"{'were' if many else 'was'} cancelled{when}"
        case State.UNVERIFIED:
            return f"left no record of how {'they' if many else 'it'} ended"
        case State.CHECKPOINTED:
            return f"{'are' if many else 'is'} checkpointed, and may be continued"
        case State.DEADLINE:
            return "passed the deadline"
        case State.PREEMPTED:
            return f"{'were' if many else 'was'} ended by the engine to make room"
        case State.BOOT_FAIL:
            return "got a node that did not start"
        case _:
            return f"lost {'their nodes' if many else 'its node'}"


def _has_begun(one: Failed) -> bool:
    return one.exit is not None or one.attempt > 0


def _failed(first: Failed, many: bool) -> str:
    if first.exit is None and first.reason in reasons.NOT_STARTED:
        return f"could not start: {_detail(first)}"
    if first.exit is None:
        return f"failed, exit code not known{f': {_detail(first)}' if first.detail else ''}"
    if first.reason in reasons.THOUGH_ZERO:
        return f"failed, though {'they' if many else 'it'} exited with code 0: {_detail(first)}"
    number = first.exit.signal
    if number:
        return f"ended by signal {number}, {signal_name(number)}: {signal_words(number)}"
    return f"failed with exit {first.exit.code}"


def _peaks(jobs: list[Failed]) -> str:
    peaks = [one.peak_bytes for one in jobs if one.peak_bytes is not None]
    noun = "peak" if len(jobs) == 1 else "peaks"
    if not peaks:
        return f"; {noun} not known"
    low, high = bytes_words(min(peaks)), bytes_words(max(peaks))
    return f"; {noun} {low}" if low == high else f"; {noun} {low} to {high}"


def _detail(one: Failed) -> str:
    text = one.detail or one.reason
    return text if len(text) <= LONGEST_DETAIL else f"{text[: LONGEST_DETAIL - 1]}…"


def _skipped(jobs: list[Failed]) -> str:
    needs = {need.need: need.state for one in jobs if (need := parse_need_reason(one.reason)) is not None}
    if not needs:
        return jobs[0].reason
    if len(needs) == 1:
        ((name, state),) = needs.items()
        return f"{name}, which {'they need' if _count(jobs) > 1 else 'it needs'}, is {state}"
    state = next(iter(needs.values()))
    return f"what {'they need' if _count(jobs) > 1 else 'it needs'} is {state}"


def _next(run: int, state: State, first: Failed) -> tuple[str, ...]:
    match state:
        case State.TIMEOUT if first.reason == reasons.DEADLINE:
            return (f"aver log {first.job}",)
        case State.OUT_OF_MEMORY | State.TIMEOUT:
            return (f"aver recover {run} --dry-run", f"aver usage {run} --correct --dry-run")
        case State.FAILED if first.reason in reasons.NOT_STARTED:
            return (f"aver why {first.job}",)
        case State.FAILED:
            return (f"aver log {first.job}", f"aver retry {run}", f"aver reinit {run}")
        case State.CANCELLED | State.DEADLINE:
            return (f"aver why {first.job}", f"aver retry {first.job}")
        case State.UNVERIFIED:
            return (f"aver why {first.job}", f"aver accept {first.job}", f"aver recover {run} --dry-run")
        case State.SKIPPED:
            return ()
        case _:
            return (f"aver recover {run} --dry-run",)
