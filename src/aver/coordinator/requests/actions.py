"""What people ask for, done to the state machine: each writes down who asked, and acts only when that is durable.

Each function returns a sentence for the one who asked. Asking twice is harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aver.coordinator.state.attempt import Reading
from aver.coordinator.state.fold import FORCE, NOW
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.coordinator.state.steps import KILL
from aver.engines.api import Control, Heard
from aver.model import reasons
from aver.model.events import FlowReplaced, JobMoved, Observed, PersonAsked, RunMoved, Usage
from aver.model.evidence import CancelledBefore, Verdict
from aver.model.job import FlowSpec, Scope
from aver.model.states import State
from aver.protocol.messages import ResultCode


class Said(str):
    """What was done to one job, as a sentence for the one who asked; the code says it to a program."""

    code: ResultCode

    def __new__(cls, sentence: str, code: ResultCode = ResultCode.DONE) -> Said:
        said = super().__new__(cls, sentence)
        said.code = code
        return said


STARTED = (State.RUNNING, State.SUSPENDED, State.COMPLETING)
HELD_BY_ENGINE = (reasons.JOB_HELD_USER, reasons.JOB_HELD_ADMIN)


def cancel(machine: Machine, run: LiveRun, index: int, by: str, now: float, force: bool = False) -> Said:
    """Cancel one job; the sentence says what happened. `force`: KILL at once, without TERM."""
    state = run.settled_state(index)
    if state is not None:
        return Said(f"already {state}", ResultCode.ALREADY)
    asked = PersonAsked(now, run.number, run.job_number(index), by, "cancel", FORCE if force else "")
    machine.emit(asked)
    is_running = _cancel_asked(machine, run, index, asked, now, force)
    machine.advance(now)
    return Said("cancelling" if is_running else "cancelled")


def cancel_run(machine: Machine, run: LiveRun, by: str, now: float, at_once: bool, force: bool = False) -> Said:
    """Cancel all of a run: what runs is ended, what had not started is CANCELLED."""
    if run.state.is_settled:
        return Said(f"already {run.state}", ResultCode.ALREADY)
    asked = PersonAsked(now, run.number, None, by, "cancel", " ".join(_details(at_once, force)))
    machine.emit(asked)
    machine.advance(now)
    for index in range(run.job_count):
        if run.plan.is_started(index) and (at_once or not run.plan.is_finisher(index)):
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


def signal(
    machine: Machine, run: LiveRun, index: int, number: int, by: str, now: float, scope: Scope | None = None
) -> Said:
    """Send a signal to every process of a running job, to its script alone, or to its steps. Not a cancellation."""
    job = run.job_number(index)
    attempt = machine.by_job.get(job)
    if attempt is None or not attempt.is_dispatched:
        state = run.settled_state(index)
        if state is not None:
            return Said(f"already {state}", ResultCode.SETTLED)
        return Said("not running: nothing was signalled", ResultCode.NOT_RUNNING)
    if attempt.can.has_queue and attempt.state not in STARTED:
        return Said("not running: nothing was signalled", ResultCode.NOT_RUNNING)
    asked = PersonAsked(now, run.number, job, by, "signal", str(number))
    machine.emit(asked)
    if attempt.can.signals_steps:
        machine.after(asked, [Control(attempt.key, "signal", signal=number, scope=scope)])
        return Said("signalled")
    keys = attempt.running_keys() if scope is not Scope.SCRIPT else [attempt.key]
    reached = Scope.SCRIPT if scope is Scope.SCRIPT else None
    chosen = [key for key in keys if scope is not Scope.STEPS or key != attempt.key]
    machine.after(asked, [Control(key, "signal", signal=number, scope=reached) for key in chosen])
    return Said("signalled")


def hold(machine: Machine, run: LiveRun, index: int, by: str, now: float) -> Said:
    job = run.job_number(index)
    attempt = machine.by_job.get(job)
    state = run.settled_state(index)
    if state is not None:
        return Said(f"already {state}", ResultCode.SETTLED)
    if attempt is not None and attempt.has_room:
        if attempt.can.has_queue and attempt.state not in STARTED:
            return Said(attempt.can.refusals.hold, ResultCode.REFUSED)
        return Said("running: a job that runs can't be held", ResultCode.RUNNING)
    if index in run.held:
        return Said("held already", ResultCode.ALREADY)
    machine.emit(PersonAsked(now, run.number, job, by, "hold"))
    machine.packer.remove(job)
    machine.show_reason(run, job, reasons.JOB_HELD_USER, now)
    return Said("held")


def release(machine: Machine, run: LiveRun, index: int, by: str, now: float) -> Said:
    job = run.job_number(index)
    if index not in run.held:
        attempt = machine.by_job.get(job)
        if attempt is not None and attempt.can.has_queue and attempt.shown_reason in HELD_BY_ENGINE:
            return Said(attempt.can.refusals.release, ResultCode.REFUSED)
        return Said("not held", ResultCode.ALREADY)
    machine.emit(PersonAsked(now, run.number, job, by, "release"))
    deadline = run.spec(index).deadline_at
    if deadline is not None and deadline <= now:
        machine.deadline_passed(run, index, now)
    else:
        ready = run.plan.is_started(index)
        machine.show_reason(run, job, reasons.PRIORITY if ready else reasons.DEPENDENCY, now)
        machine.look_again(run, index, now)
    machine.advance(now)
    return Said("released")


def suspend(machine: Machine, run: LiveRun, index: int, by: str, now: float, resume: bool) -> Said:
    job = run.job_number(index)
    attempt = machine.by_job.get(job)
    if attempt is None or attempt.state not in (State.RUNNING, State.SUSPENDED, State.COMPLETING):
        return Said("not running", ResultCode.NOT_RUNNING)
    if attempt.can.refusals.suspend:
        return Said(attempt.can.refusals.suspend, ResultCode.REFUSED)
    is_ending = attempt.state is State.COMPLETING or attempt.cancel_asked or attempt.requeue
    if is_ending or attempt.is_over_time or attempt.is_parked:
        return Said("being ended", ResultCode.REFUSED)
    if attempt.is_suspended is not resume:
        return Said("suspended already" if attempt.is_suspended else "not suspended", ResultCode.ALREADY)
    word = "resume" if resume else "suspend"
    asked = PersonAsked(now, run.number, job, by, word)
    machine.emit(asked)
    machine.after(asked, [Control(key, word) for key in attempt.running_keys()])
    state = State.RUNNING if resume else State.SUSPENDED
    machine.emit(Observed(now, run.number, job, attempt.attempt, "person", f"{word} by {by}", state, reasons.NONE))
    if resume:
        machine.resume_steps(attempt, now)
    return Said("resumed" if resume else "suspended")


def correct(machine: Machine, run: LiveRun, index: int, verdict: Verdict, said: str, by: str, now: float) -> None:
    """A person's evidence changed a settled job's verdict; its skipped dependents come back.

    What a completion generated was added before: it is part of the verdict.
    """
    job = run.job_number(index)
    machine.emit(PersonAsked(now, run.number, job, by, "accept", said))
    attempt = max(1, run.attempts.get(index, 1))
    machine.emit(Observed(now, run.number, job, attempt, "person", said, verdict.state, verdict.reason, verdict))
    reopen_run(machine, run, now)
    machine.advance(now)


def correct_late(
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


def reinit(
    machine: Machine, run: LiveRun, causes: Mapping[int, str], flow: FlowSpec | None, by: str, now: float
) -> LiveRun:
    """New attempts of jobs (by index, with the cause) of a settled run, by the flow as it is now; None: as it was.

    Raise ValueError if the flow is no graph.
    """
    if flow is not None:
        machine.emit(FlowReplaced(now, run.number, by, flow))
        run = machine.runs[run.number]
        machine.advance(now)
    for index, why in causes.items():
        machine.emit(PersonAsked(now, run.number, run.job_number(index), by, "reinit", why))
    _run_again(machine, run, list(causes), now)
    return run


def retry(machine: Machine, run: LiveRun, indices: Sequence[int], by: str, now: float) -> None:
    """New attempts of settled jobs; what was skipped below them comes back."""
    for index in indices:
        machine.emit(PersonAsked(now, run.number, run.job_number(index), by, "retry"))
    _run_again(machine, run, indices, now)


def _run_again(machine: Machine, run: LiveRun, indices: Sequence[int], now: float) -> None:
    state = State.PENDING if run.state.is_settled else run.state
    machine.emit(RunMoved(now, run.number, state, run.round + 1))
    for index in indices:
        machine.emit(JobMoved(now, run.number, run.job_number(index), State.PENDING, reasons.DEPENDENCY))
    machine.advance(now)


def reopen_run(machine: Machine, run: LiveRun, now: float) -> None:
    """The run goes on, if it was settled."""
    if run.state.is_settled:
        machine.emit(RunMoved(now, run.number, State.PENDING, run.round))
