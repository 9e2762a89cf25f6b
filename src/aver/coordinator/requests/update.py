"""What scontrol asks for: begin again (requeue), and change what was asked for (update).

As in `actions`: who asked is written down first, and acted on when that is durable. Each function returns a
sentence for the one who asked; where Slurm refuses, it is Slurm's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aver.coordinator.requests import actions
from aver.coordinator.state.changes import PRIORITY, THROTTLE, TIME_LIMIT, WHILE_IT_WAITS
from aver.coordinator.state.fold import REQUEUE_HOLD
from aver.coordinator.state.machine import Driver
from aver.coordinator.state.run import LiveRun
from aver.engines.api import LOCAL, Control
from aver.model import reasons
from aver.model.events import PersonAsked

NOT_PENDING = "Job is no longer pending execution"  # Slurm's words
PENDING = "Job is pending execution"
DISABLED = "Requested operation is presently disabled"
COMPLETED = "Job/step already completing or completed"
ON_SLURM = "the job is Slurm's: its limit can be changed there"


def requeue(driver: Driver, run: LiveRun, index: int, how: str, by: str, now: float) -> str:
    """A new attempt of a job that runs or is settled; the last attempt keeps its own verdict."""
    job = run.job_number(index)
    slurm = run.spec(index).slurm
    if slurm is not None and slurm.requeue is False:
        return DISABLED
    attempt = driver.by_job.get(job)
    if attempt is not None and attempt.is_dispatched:
        if attempt.is_parked or attempt.cancel_asked:
            return COMPLETED
        asked = PersonAsked(now, run.number, job, by, how)
        driver.emit(asked)
        driver.after(asked, [Control(key, "cancel") for key in attempt.running_keys()])
        return "requeued"
    if run.settled_state(index) is None:
        return PENDING
    driver.emit(PersonAsked(now, run.number, job, by, how))
    actions.retry(driver, run, [index], by, now)
    if how == REQUEUE_HOLD:
        driver.show_reason(run, job, reasons.JOB_REQUEUED_HELD, now)
    return "requeued"


def update(driver: Driver, run: LiveRun, index: int, changes: Mapping[str, Any], by: str, now: float) -> str:
    """Change what was asked for a job that is not settled."""
    job = run.job_number(index)
    if run.settled_state(index) is not None:
        return COMPLETED
    attempt = driver.by_job.get(job)
    waits = attempt is None or not attempt.has_room
    if not waits and not WHILE_IT_WAITS.isdisjoint(changes):
        return NOT_PENDING
    if attempt is not None and attempt.is_dispatched and attempt.engine != LOCAL and TIME_LIMIT in changes:
        return ON_SLURM
    asked = PersonAsked(now, run.number, job, by, "update", json.dumps(dict(changes)))
    driver.emit(asked)
    if waits and not (WHILE_IT_WAITS | {THROTTLE}).isdisjoint(changes):
        driver.look_again(run, index, now)
    if attempt is not None and attempt.is_dispatched and TIME_LIMIT in changes:
        driver.after(asked, [Control(attempt.key, "limit", time_s=changes[TIME_LIMIT])])
    if PRIORITY in changes and driver.packer.is_waiting(job):
        driver.look_again(run, index, now)
    driver.advance(now)
    return "updated"
