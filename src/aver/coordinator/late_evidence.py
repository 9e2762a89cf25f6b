"""Evidence that comes after the verdict: a job of a cluster of which nobody knew how it ended is settled by it.

Only an attempt that is still its job's newest is open to that, and that is UNVERIFIED, or counted as completed by
settle.fallback. What a person accepted or had run again meanwhile stands, and so does what ran after it.
"""

from __future__ import annotations

from collections.abc import Callable

from aver.coordinator.requests.retry import reopen_run
from aver.coordinator.state.end import cluster_usage
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Heard
from aver.judge.scheduler import is_open, judge_late
from aver.model.events import Observed, Usage
from aver.model.evidence import Evidence, LeftQueue, Taken, Verdict
from aver.model.job import FlowSpec
from aver.model.states import State
from aver.store.read.reader import Reader

Revive = Callable[[int, float], LiveRun | None]


def take_late(
    machine: Machine, open_reader: Callable[[], Reader | None], revive: Revive, one: Heard, now: float
) -> bool:
    """Take it; False if it is of an attempt that is not open any more, and the engine may forget it."""
    job, attempt = _numbers(one.key)
    if job is None:
        return False
    reader = open_reader()
    if reader is None:
        return False
    with reader:
        row = reader.job(job)
        newest = max(reader.attempts(job), key=lambda some: some.attempt, default=None)
    if row is None or newest is None or newest.key != one.key or newest.attempt != attempt:
        return False
    if not machine.live.capabilities_of(newest.engine).may_tell_late:
        return False
    if not all(is_open(each.state, each.exit, each.verified) for each in (row, newest)):
        return False
    if isinstance(one.evidence, (Taken, LeftQueue)):
        return True
    run = revive(job, now)
    index = run.index_of(job) if run is not None else None
    if run is None or index is None:
        return False
    known: list[Evidence] = [one.evidence]
    verdict = judge_late(known, run.rules(index))
    if verdict is None:
        return True
    usage = cluster_usage([one.evidence], newest.started_at, newest.node or "")

    def settle(found: FlowSpec | str | None, now: float) -> None:
        again = revive(job, now)
        if again is None or again.settled_state(index) is not row.state or one.key in machine.attempts:
            return  # a person was quicker
        if found is not None:
            reopen_run(machine, again, now)
            known.append(machine.add_generated(again, index, found, now))
        judged = judge_late(known, again.rules(index))
        assert judged is not None
        machine.note_ending(job, attempt, one.key)
        _correct(machine, again, index, attempt, judged, usage, one, now)

    if verdict.state is State.COMPLETED and run.spec(index).generates is not None:
        machine.live.read_generated(run, index, settle)
    else:
        settle(None, now)
    return True


def _numbers(key: str) -> tuple[int | None, int]:
    parts = key.split(".")
    if len(parts) != 4 or not parts[1].isdecimal() or not parts[2].isdecimal():
        return None, 0
    return int(parts[1]), int(parts[2])


def _correct(
    machine: Machine, run: LiveRun, index: int, attempt: int, verdict: Verdict, usage: Usage | None, one: Heard,
    now: float,
) -> None:  # fmt: skip
    """Evidence that came late settled an UNVERIFIED job; its skipped dependents come back."""
    job = run.job_number(index)
    machine.emit(
        Observed(
            now, run.number, job, attempt, one.source, one.said, verdict.state, verdict.reason, verdict, usage,
        )
    )  # fmt: skip
    reopen_run(machine, run, now)
    machine.advance(now)
