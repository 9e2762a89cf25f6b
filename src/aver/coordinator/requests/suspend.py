"""`suspend` and `resume`: stop the processes of running jobs, and let them go on."""

from __future__ import annotations

from aver.coordinator.requests.context import Context, Said
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Control
from aver.model import reasons
from aver.model.events import Observed, PersonAsked
from aver.model.states import STARTED, State
from aver.protocol.messages import ResultCode, Results, Resume, Suspend

OF_DAEMON = "its processes are those of docker's daemon: `docker pause` stops them"


@writes(Suspend)
def suspend_jobs(context: Context, _: Peer, request: Suspend, now: float) -> Results:
    def act(run: LiveRun, index: int) -> Said:
        return suspend(context.machine, run, index, request.by, now, request.reason)

    return context.each_job(request.ids, now, act)


@writes(Resume)
def resume_jobs(context: Context, _: Peer, request: Resume, now: float) -> Results:
    def act(run: LiveRun, index: int) -> Said:
        return resume(context.machine, run, index, request.by, now, request.reason)

    return context.each_job(request.ids, now, act)


def suspend(machine: Machine, run: LiveRun, index: int, by: str, now: float, reason: str = "") -> Said:
    return _move(machine, run, index, State.SUSPENDED, by, now, reason)


def resume(machine: Machine, run: LiveRun, index: int, by: str, now: float, reason: str = "") -> Said:
    return _move(machine, run, index, State.RUNNING, by, now, reason)


def _move(machine: Machine, run: LiveRun, index: int, wanted: State, by: str, now: float, reason: str) -> Said:
    job = run.job_number(index)
    attempt = machine.by_job.get(job)
    if attempt is None or attempt.state not in STARTED:
        return Said("not running", ResultCode.NOT_RUNNING)
    if attempt.can.refusals.suspend:
        return Said(attempt.can.refusals.suspend, ResultCode.REFUSED)
    container = run.spec(index).setup.container
    if container is not None and container.is_of_daemon:
        return Said(OF_DAEMON, ResultCode.REFUSED)
    is_ending = attempt.state is State.COMPLETING or attempt.cancel_asked or attempt.requeue
    if is_ending or attempt.is_over_time or attempt.is_parked:
        return Said("being ended", ResultCode.REFUSED)
    word = "suspend" if wanted is State.SUSPENDED else "resume"
    if attempt.is_suspended is (wanted is State.SUSPENDED):
        return Said("suspended already" if attempt.is_suspended else "not suspended", ResultCode.ALREADY)
    asked = PersonAsked(now, run.number, job, by, word, reason=reason)
    machine.emit(asked)
    machine.after(asked, [Control(key, word) for key in attempt.running_keys()])
    machine.emit(Observed(now, run.number, job, attempt.attempt, "person", f"{word} by {by}", wanted, reasons.NONE))
    if wanted is State.RUNNING:
        machine.resume_steps(attempt, now)
        return Said("resumed")
    return Said("suspended")
