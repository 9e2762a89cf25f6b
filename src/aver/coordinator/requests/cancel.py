"""`cancel`: end jobs and runs, or send them a signal."""

from __future__ import annotations

from aver.coordinator.requests.context import Context, Said, together
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state.attempt import Reading
from aver.coordinator.state.cancellation import begun
from aver.coordinator.state.fold import FORCE, NOW
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.coordinator.state.steps import KILL
from aver.engines.api import Control
from aver.model import reasons
from aver.model.events import Observed, PersonAsked
from aver.model.evidence import CancelledBefore
from aver.model.job import Scope
from aver.model.states import STARTED, State
from aver.protocol.messages import Cancel, ResultCode, Results

ECHO_S = 3  # within which a step's srun passes on a signal that went to the whole job


@writes(Cancel)
def cancel_jobs(context: Context, _: Peer, request: Cancel, now: float) -> Results:
    machine, signal, by, reason = context.machine, request.signal, request.by, request.reason

    def act(run: LiveRun, index: int | None) -> Said:
        if signal is not None:
            indices = [index] if index is not None else list(range(run.job_count))
            done = [send_signal(machine, run, one, signal, by, now, request.scope, reason) for one in indices]
            return done[0] if len(done) == 1 else together(done)
        if index is None:
            return cancel_run(machine, run, by, now, request.now, request.force, reason)
        return cancel(machine, run, index, by, now, request.force, reason)

    over = ResultCode.ALREADY if signal is None else ResultCode.SETTLED
    return context.each(request.ids, now, act, settled=over)


def cancel(
    machine: Machine, run: LiveRun, index: int, by: str, now: float, force: bool = False, reason: str = ""
) -> Said:
    """Cancel one job; the sentence says what happened. `force`: KILL at once, without TERM."""
    state = run.settled_state(index)
    if state is not None:
        return Said(f"already {state}", ResultCode.ALREADY)
    asked = PersonAsked(now, run.number, run.job_number(index), by, "cancel", FORCE if force else "", reason)
    machine.emit(asked)
    is_running = _cancel_asked(machine, run, index, asked, now, force)
    machine.advance(now)
    return Said("cancelling" if is_running else "cancelled")


def cancel_run(
    machine: Machine, run: LiveRun, by: str, now: float, at_once: bool, force: bool = False, reason: str = ""
) -> Said:
    """Cancel all of a run: what runs is ended, what had not started is CANCELLED; of very many jobs not at once."""
    if run.state.is_settled:
        return Said(f"already {run.state}", ResultCode.ALREADY)
    asked = PersonAsked(now, run.number, None, by, "cancel", " ".join(_details(at_once, force)), reason)
    machine.emit(asked)
    for index in begun(machine.live, run):
        if at_once or not run.plan.is_finisher(index):
            _cancel_asked(machine, run, index, asked, now, force)
    machine.advance(now)
    return Said("cancelling" if not run.state.is_settled else "cancelled")


def _details(at_once: bool, force: bool) -> list[str]:
    return [word for word, is_said in ((NOW, at_once), (FORCE, force)) if is_said]


def _cancel_asked(machine: Machine, run: LiveRun, index: int, asked: PersonAsked, now: float, force: bool) -> bool:
    """Act on a cancellation: end what runs when it is durable, and what has not begun at once. Whether it runs."""
    attempt = machine.by_job.get(run.job_number(index))
    if attempt is not None and isinstance(attempt.phase, Reading):
        machine.stop_reading(attempt, asked.by, now)
        return False
    if attempt is not None and attempt.is_dispatched:
        number = KILL if force else 0
        machine.after(asked, [Control(key, "cancel", signal=number) for key in attempt.running_keys()])
        if not attempt.can.has_queue and attempt.state in (State.RUNNING, State.SUSPENDED):
            said = "KILL is sent" if force else "TERM is sent; KILL follows after its kill wait"
            machine.emit(
                Observed(
                    now, run.number, attempt.job, attempt.attempt, "coordinator", said, State.COMPLETING, reasons.NONE
                )
            )
        return True
    machine.end_unstarted(run, index, CancelledBefore(now, asked.by), now)
    return False


def send_signal(
    machine: Machine,
    run: LiveRun,
    index: int,
    number: int,
    by: str,
    now: float,
    scope: Scope | None = None,
    reason: str = "",
) -> Said:
    """Send a signal to every process of a running job, to its script alone, or to its steps. Not a cancellation.

    `Scope.ALL` is every process of the script, and the program of each task of its steps. An srun among these
    processes passes the signal on to its tasks, which have it already: `step.signal` drops that one."""
    job = run.job_number(index)
    attempt = machine.by_job.get(job)
    if attempt is None or not attempt.is_dispatched or attempt.is_behind:
        state = run.settled_state(index)
        if state is not None:
            return Said(f"already {state}", ResultCode.SETTLED)
        return Said("not running: nothing was signalled", ResultCode.NOT_RUNNING)
    if attempt.can.has_queue and attempt.state not in STARTED:
        return Said("not running: nothing was signalled", ResultCode.NOT_RUNNING)
    asked = PersonAsked(now, run.number, job, by, "signal", str(number), reason)
    machine.emit(asked)
    if attempt.can.signals_steps:
        machine.after(asked, [Control(attempt.key, "signal", signal=number, scope=scope)])
        return Said("signalled")
    keys = attempt.running_keys() if scope is not Scope.SCRIPT else [attempt.key]
    chosen = [key for key in keys if scope is not Scope.STEPS or key != attempt.key]
    if scope in (None, Scope.ALL):
        for step in attempt.live_steps():
            step.echoes[number] = now + ECHO_S
    of_script = Scope.SCRIPT if scope is Scope.SCRIPT else None
    of_task = None if scope is None else Scope.SCRIPT  # as in Slurm: the program of each task
    reached = [(key, of_script if key == attempt.key else of_task) for key in chosen]
    machine.after(asked, [Control(key, "signal", signal=number, scope=scope) for key, scope in reached])
    return Said("signalled")
