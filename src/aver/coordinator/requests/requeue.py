"""`requeue`: end a running job and begin it again; a settled one begins again."""

from __future__ import annotations

from aver.client.job_files import has_env
from aver.coordinator.requests.context import Context, Said
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.requests.retry import retry
from aver.coordinator.requests.update import COMPLETED
from aver.coordinator.server import Peer
from aver.coordinator.state.fold import REQUEUES
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Control
from aver.model import reasons
from aver.model.events import Observed, PersonAsked
from aver.model.states import State
from aver.protocol.messages import Requeue, ResultCode, Results

PENDING = "Job is pending execution"  # Slurm's words
DISABLED = "Requested operation is presently disabled"
ENDS = "TERM is sent; KILL follows after its kill wait"


@writes(Requeue)
def requeue_jobs(context: Context, _: Peer, request: Requeue, now: float) -> Results:
    how = "requeuespecial" if request.special else "requeuehold" if request.hold else "requeue"

    def act(run: LiveRun, index: int) -> Said:
        if run.state.is_settled and not has_env(context.home, run.number):
            return Said("its environment was removed; submit it again", ResultCode.REFUSED)
        return requeue(context.machine, run, index, how, request.by, now)

    return context.each_job(request.ids, now, act, revive=True)


def requeue(machine: Machine, run: LiveRun, index: int, how: str, by: str, now: float) -> Said:
    """A new attempt of a job that runs or is settled; the last attempt keeps its own verdict."""
    job = run.job_number(index)
    slurm = run.spec(index).slurm
    if slurm is not None and slurm.requeue is False:
        return Said(DISABLED, ResultCode.REFUSED)
    attempt = machine.by_job.get(job)
    if attempt is not None and attempt.is_dispatched and not attempt.is_behind:
        if attempt.is_parked or attempt.cancel_asked:
            return Said(COMPLETED, ResultCode.SETTLED)
        asked = PersonAsked(now, run.number, job, by, how)
        machine.emit(asked)
        machine.after(asked, [Control(key, "cancel", is_requeue=True) for key in attempt.running_keys()])
        if not attempt.can.has_queue and attempt.state in (State.RUNNING, State.SUSPENDED):
            machine.emit(
                Observed(now, run.number, job, attempt.attempt, "coordinator", ENDS, State.COMPLETING, reasons.NONE)
            )
        return Said("requeued")
    if run.settled_state(index) is None:
        return Said(PENDING, ResultCode.NOT_RUNNING)
    machine.emit(PersonAsked(now, run.number, job, by, how))
    retry(machine, run, [index], by, now)
    if REQUEUES[how] in reasons.REQUEUED_HELD:
        machine.show_reason(run, job, REQUEUES[how], now)
    return Said("requeued")
