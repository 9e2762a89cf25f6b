"""`suspend` and `resume`: stop the processes of running jobs, and let them go on.

The reply comes when the witnesses have done it and that is durable, or after a while that they have not.
"""

from __future__ import annotations

from aver.coordinator.requests.context import Context, Said
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.coordinator.watchers import Held
from aver.engines.api import Control
from aver.model.events import PersonAsked
from aver.model.states import STARTED, State
from aver.protocol.messages import ResultCode, Results, Resume, Suspend

OF_DAEMON = "its processes are those of docker's daemon: `docker pause` stops them"


@writes(Suspend)
def suspend_jobs(context: Context, peer: Peer, request: Suspend, now: float) -> Results | None:
    return _move_jobs(context, peer, request, State.SUSPENDED, now)


@writes(Resume)
def resume_jobs(context: Context, peer: Peer, request: Resume, now: float) -> Results | None:
    return _move_jobs(context, peer, request, State.RUNNING, now)


def _move_jobs(context: Context, peer: Peer, request: Suspend | Resume, wanted: State, now: float) -> Results | None:
    jobs: dict[int, int] = {}

    def act(run: LiveRun, index: int) -> Said:
        said = _move(context.machine, run, index, wanted, request.by, now, request.reason)
        attempt = context.machine.by_job.get(run.job_number(index))
        if said.code is ResultCode.DONE and attempt is not None and _is_awaited(context.machine, attempt, wanted):
            jobs[attempt.job] = run.number
        return said

    results = context.each_job(request.ids, now, act)
    if not jobs:
        return results
    context.watchers.hold(Held(peer, results, wanted, jobs))
    return None


def _is_awaited(machine: Machine, attempt: LiveAttempt, wanted: State) -> bool:
    """Whether the attempt is to be shown in this state: also one that is to go on first and to be stopped again."""
    return attempt.state is not wanted or (wanted is State.SUSPENDED and attempt.key in machine.live.moving)


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
    word, done = ("suspend", "suspended") if wanted is State.SUSPENDED else ("resume", "resumed")
    if bool(attempt.suspend_asked) is (wanted is State.SUSPENDED):
        if attempt.state is not wanted:  # somebody has asked before, and it is not done yet
            return Said(done)
        return Said("suspended already" if attempt.is_suspended else "not suspended", ResultCode.ALREADY)
    asked = PersonAsked(now, run.number, job, by, word, reason=reason)
    machine.emit(asked)
    machine.after(asked, [Control(key, word) for key in attempt.running_keys()])
    return Said(done)
