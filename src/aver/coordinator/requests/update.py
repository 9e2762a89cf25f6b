"""What scontrol asks for: begin again (requeue), and change what was asked for (update).

As in `asking`: who asked is written down first, and acted on when that is durable. Each function returns a
sentence for the one who asked; where Slurm refuses, it is Slurm's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aver.coordinator.requests import actions
from aver.coordinator.requests.update_fields import NOT_PENDING, PRIORITY, THROTTLE, WHILE_IT_WAITS, alter, ask_again
from aver.coordinator.state.live import LiveRun
from aver.coordinator.state.machine import Driver
from aver.coordinator.state.succession import REQUEUE_DELAY_S
from aver.engines.api import LOCAL, Control
from aver.model import reasons
from aver.model.events import PersonAsked
from aver.model.states import State

PENDING = "Job is pending execution"
DISABLED = "Requested operation is presently disabled"
COMPLETED = "Job/step already completing or completed"
ON_SLURM = "the job is Slurm's: its limit can be changed there"
REQUEUE, REQUEUE_HOLD = "requeue", "requeuehold"
REQUEUES = (REQUEUE, REQUEUE_HOLD)

TIME_LIMIT, NAME, COMMENT = "time_s", "name", "comment"
SHOWN_ONLY = ("partition", "account", "qos", "nice")  # facts that Slurm's commands show and nothing else needs


def requeue(driver: Driver, run: LiveRun, index: int, how: str, by: str, now: float) -> str:
    """A new attempt of a job that runs or is settled; the last attempt keeps its own verdict."""
    job = run.job_number(index)
    if dict(run.spec(index).facts).get("requeue") == "0":
        return DISABLED
    attempt = driver.by_job.get(job)
    if attempt is not None and attempt.is_dispatched:
        if attempt.parked is not None or attempt.cancel_asked:
            return COMPLETED
        asked = PersonAsked(now, run.number, job, by, how)
        driver.emit(asked)
        attempt.requeue = how
        driver.after_commit += [(asked, Control(key, "cancel")) for key in driver.running_keys(attempt)]
        return "requeued"
    if run.plan.state(index) is None:
        return PENDING
    if how == REQUEUE_HOLD:
        run.held.add(index)
    driver.emit(PersonAsked(now, run.number, job, by, how))
    actions.retry(driver, run, [index], by, now)
    if how == REQUEUE_HOLD:
        driver.show_reason(run, job, reasons.JOB_REQUEUED_HELD, now)
    elif driver.packer.is_waiting(job):
        driver.packer.remove(job)
        driver.show_reason(run, job, reasons.BEGIN_TIME, now)
        driver.at(now + REQUEUE_DELAY_S, "again", job)
    return "requeued"


def update(driver: Driver, run: LiveRun, index: int, changes: Mapping[str, Any], by: str, now: float) -> str:
    """Change what was asked for a job that is not settled."""
    job = run.job_number(index)
    if run.plan.state(index) is not None:
        return COMPLETED
    attempt = driver.by_job.get(job)
    waits = attempt is None or not (attempt.is_dispatched or attempt.wants_start)
    if not waits and not WHILE_IT_WAITS.isdisjoint(changes):
        return NOT_PENDING
    if attempt is not None and attempt.is_dispatched and attempt.engine != LOCAL and TIME_LIMIT in changes:
        return ON_SLURM
    asked = PersonAsked(now, run.number, job, by, "update", json.dumps(dict(changes)))
    driver.emit(asked)
    apply(driver, run, index, changes)
    alter(run, index, changes)
    if waits and not (WHILE_IT_WAITS | {THROTTLE}).isdisjoint(changes):
        ask_again(driver, run, index, now)
    if attempt is not None and attempt.is_dispatched and TIME_LIMIT in changes:
        control = Control(attempt.key, "limit", time_s=changes[TIME_LIMIT])
        driver.after_commit.append((asked, control))
    if PRIORITY in changes and driver.packer.is_waiting(job):
        driver.packer.remove(job)
        driver.starting.enqueue(run, index)
    return "updated"


def apply(driver: Driver, run: LiveRun, index: int, changes: Mapping[str, Any]) -> None:
    """Note the changes in memory: what the next order and the next choice go by."""
    if TIME_LIMIT in changes:
        run.requests[index] = replace(run.request(index), time_s=changes[TIME_LIMIT])
        attempt = driver.by_job.get(run.job_number(index))
        if attempt is not None:
            attempt.request = replace(attempt.request, time_s=changes[TIME_LIMIT])


def apply_again(
    driver: Driver,
    run: LiveRun,
    asked: Mapping[int, PersonAsked],
    since: Mapping[int, int],
    planned: Mapping[tuple[int, int], int],
) -> None:
    """After a restart: changes hold on, and a requeue that was durable and perhaps not acted on is passed on again.

    All by the numbers of events: `since` is when a person last had a job run again, `planned` when attempts were. A
    limit that was asked for before either says nothing of what came after it, which has its own.
    """
    for seq, event in asked.items():
        index = run.index_of(event.job) if event.job is not None else None
        if index is None or event.job is None:
            continue
        attempt = driver.by_job.get(event.job)
        newest = planned.get((event.job, run.attempts.get(index, 0)), 0)
        if event.what == "update":
            changes = changes_of(event)
            if seq < max(newest, since.get(event.job, 0)):
                changes.pop(TIME_LIMIT, None)
            apply(driver, run, index, changes)
            if attempt is not None and TIME_LIMIT in changes and attempt.state is not State.PENDING:
                driver.out.controls.append(Control(attempt.key, "limit", time_s=changes[TIME_LIMIT]))
        elif event.what in REQUEUES and attempt and newest < seq:
            attempt.requeue = event.what
            driver.out.controls.append(Control(attempt.key, "cancel"))


def changes_of(event: PersonAsked) -> dict[str, Any]:
    """What an update asked for; nothing where its text can't be read."""
    try:
        changes = json.loads(event.detail)
    except ValueError:
        return {}
    return changes if isinstance(changes, dict) else {}
