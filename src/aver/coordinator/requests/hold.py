"""`hold` and `release`: keep pending jobs from starting."""

from __future__ import annotations

from aver.coordinator.requests.context import Context, Said
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.model import reasons
from aver.model.events import PersonAsked
from aver.model.states import STARTED
from aver.protocol.messages import Hold, Release, ResultCode, Results

HELD_BY_ENGINE = (reasons.JOB_HELD_USER, reasons.JOB_HELD_ADMIN)


@writes(Hold)
def hold_jobs(context: Context, _: Peer, request: Hold, now: float) -> Results:
    def act(run: LiveRun, index: int) -> Said:
        return hold(context.machine, run, index, request.by, now, request.reason)

    return context.each_job(request.ids, now, act)


@writes(Release)
def release_jobs(context: Context, _: Peer, request: Release, now: float) -> Results:
    def act(run: LiveRun, index: int) -> Said:
        return release(context.machine, run, index, request.by, now, request.reason)

    return context.each_job(request.ids, now, act)


def hold(machine: Machine, run: LiveRun, index: int, by: str, now: float, reason: str = "") -> Said:
    job = run.job_number(index)
    attempt = machine.by_job.get(job)
    state = run.settled_state(index)
    if state is not None:
        return Said(f"already {state}", ResultCode.SETTLED)
    if attempt is not None and attempt.has_room:
        if attempt.can.has_queue and attempt.state not in STARTED:
            return Said(attempt.can.refusals.hold, ResultCode.REFUSED)
        if attempt.is_behind:
            return Said("about to begin: it can't be held any more", ResultCode.RUNNING)
        return Said("running: a job that runs can't be held", ResultCode.RUNNING)
    if index in run.held:
        return Said("held already", ResultCode.ALREADY)
    machine.emit(PersonAsked(now, run.number, job, by, "hold", reason=reason))
    machine.packer.remove(job)
    machine.show_reason(run, job, reasons.JOB_HELD_USER, now)
    return Said("held")


def release(machine: Machine, run: LiveRun, index: int, by: str, now: float, reason: str = "") -> Said:
    job = run.job_number(index)
    if index not in run.held:
        attempt = machine.by_job.get(job)
        if attempt is not None and attempt.can.has_queue and attempt.shown_reason in HELD_BY_ENGINE:
            return Said(attempt.can.refusals.release, ResultCode.REFUSED)
        return Said("not held", ResultCode.ALREADY)
    machine.emit(PersonAsked(now, run.number, job, by, "release", reason=reason))
    deadline = run.spec(index).deadline_at
    if deadline is not None and deadline <= now:
        machine.deadline_passed(run, index, now)
    else:
        ready = run.plan.is_started(index)
        machine.show_reason(run, job, reasons.PRIORITY if ready else reasons.DEPENDENCY, now)
        machine.look_again(run, index, now)
    machine.advance(now)
    return Said("released")
