"""`update`: change what was asked for a job. Where Slurm refuses, the sentence is Slurm's."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from aver.coordinator.recovery import past_jobs
from aver.coordinator.requests.context import Context, Said
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.server import Peer
from aver.coordinator.state import steps
from aver.coordinator.state.changes import PRIORITY, STEP, THROTTLE, TIME_LIMIT, WHILE_IT_WAITS
from aver.coordinator.state.dependency import PROBLEM
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import Control
from aver.errors import UsageError
from aver.model.events import AttemptPlanned, PersonAsked
from aver.model.job import Argv, JobSpec
from aver.model.slurm_names import STEP_UPDATE
from aver.model.units import limit_until
from aver.protocol.messages import Changes, ResultCode, Results, Update
from aver.spec.sbatch.dependency import parse_dependency

NOT_PENDING = "Job is no longer pending execution"  # Slurm's words
COMPLETED = "Job/step already completing or completed"


@writes(Update)
def update_jobs(context: Context, _: Peer, request: Update, now: float) -> Results:
    machine, given = context.machine, request.changes
    if request.steps is not None:
        time_s, wanted = given.time_s, request.steps
        return context.each_job(
            request.ids, now, lambda run, index: update_steps(machine, run, index, wanted, time_s, request.by, now)
        )
    cleared: dict[str, Any] = {name.value: None for name in request.clear}
    changes = cleared | {
        name: value for name in Changes.__struct_fields__ if (value := getattr(given, name)) is not None
    }
    _check_dependency(context, given.dependency)
    total = machine.packer.total
    if (given.cpus is not None and not 0 <= given.cpus <= total.cpus) or (given.mem_bytes or 0) > total.mem_bytes:
        raise UsageError("Requested node configuration is not available")
    return context.each_job(request.ids, now, lambda run, index: update(machine, run, index, changes, request.by, now))


def _check_dependency(context: Context, text: str | None) -> None:
    """Refuse what can't be read, and a dependency on a job that there never was."""
    try:
        after = parse_dependency(text or "")
    except ValueError:
        raise UsageError(PROBLEM) from None
    if after is None:
        return
    reader = context.open_reader()
    try:
        if context.machine.dependencies.learn((JobSpec("", Argv(()), after=after),), past_jobs(reader)):
            raise UsageError(PROBLEM)
    finally:
        if reader is not None:
            reader.close()


def update_steps(
    machine: Machine, run: LiveRun, index: int, wanted: Collection[int], time_s: int | None, by: str, now: float
) -> Said:
    """Change the time limit of steps that run: of those with these numbers, or of all. Their job keeps its own."""
    attempt = machine.by_job.get(run.job_number(index))
    if attempt is not None and attempt.can.refusals.step_signal:
        return Said(f"a step of this job {attempt.can.refusals.step_signal}", ResultCode.REFUSED)
    running = attempt.live_steps() if attempt is not None and attempt.steps is not None else ()
    chosen = [step for step in running if not wanted or step.number in wanted]
    if wanted and not chosen:
        return Said(COMPLETED, ResultCode.NOT_FOUND)
    for step in chosen:
        detail = json.dumps({STEP: step.number, TIME_LIMIT: time_s})
        asked = PersonAsked(now, run.number, run.job_number(index), by, STEP_UPDATE, detail)
        machine.emit(asked)
        machine.after(asked, steps.limits(step))
    return Said("updated")


def update(machine: Machine, run: LiveRun, index: int, changes: Mapping[str, Any], by: str, now: float) -> Said:
    """Change what was asked for a job that is not settled."""
    job = run.job_number(index)
    if run.settled_state(index) is not None:
        return Said(COMPLETED, ResultCode.SETTLED)
    attempt = machine.by_job.get(job)
    waits = attempt is None or not attempt.has_room
    if not waits and not WHILE_IT_WAITS.isdisjoint(changes):
        return Said(NOT_PENDING, ResultCode.RUNNING)
    if attempt is not None and attempt.is_dispatched and attempt.can.refusals.limit and TIME_LIMIT in changes:
        return Said(attempt.can.refusals.limit, ResultCode.REFUSED)
    before = None if attempt is None else attempt.request
    asked = PersonAsked(now, run.number, job, by, "update", json.dumps(dict(changes)))
    machine.emit(asked)
    if waits and attempt is not None and attempt.request != before:  # its intent says what it asks for
        machine.emit(
            AttemptPlanned(now, run.number, job, attempt.attempt, attempt.key, attempt.engine, run.request(index))
        )
    if waits and not (WHILE_IT_WAITS | {THROTTLE}).isdisjoint(changes):
        machine.look_again(run, index, now)
    if attempt is not None and attempt.is_dispatched and TIME_LIMIT in changes:
        deadline = None if attempt.can.has_queue else run.spec(index).deadline_at
        limit_s = limit_until(changes[TIME_LIMIT], deadline, attempt.started_at or now)
        machine.after(asked, [Control(attempt.key, "limit", time_s=limit_s)])
    if PRIORITY in changes and machine.packer.is_waiting(job):
        machine.look_again(run, index, now)
    machine.advance(now)
    return Said("updated")
