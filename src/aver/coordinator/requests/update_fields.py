"""What a person may still change of a job that waits: begin, dependency, the array's limit, size, priority.

Pure but for `ask_again`. A change is kept in the store as what was asked for, and made again from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aver.coordinator.state.live import LiveRun
from aver.model.job import JobSpec
from aver.spec.sbatch.dependency import parse_dependency

if TYPE_CHECKING:
    from aver.coordinator.state.machine import Driver

BEGIN, DEPENDENCY, THROTTLE = "begin_at", "dependency", "throttle"
MEMORY, CPUS = "mem_bytes", "cpus"
PRIORITY = "priority"
WHILE_IT_WAITS = frozenset({BEGIN, DEPENDENCY, MEMORY, CPUS})
NOT_PENDING = "Job is no longer pending execution"  # Slurm's words


def is_readable(changes: Mapping[str, Any]) -> bool:
    """Whether each of the values is of its kind."""
    numbers = [changes[name] for name in (THROTTLE, MEMORY, CPUS) if changes.get(name) is not None]
    begin = changes.get(BEGIN)
    try:
        parse_dependency(str(changes.get(DEPENDENCY, "")))
    except ValueError:
        return False
    are_numbers = all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 62 for one in numbers)
    return are_numbers and (begin is None or isinstance(begin, (int, float)))


def altered_spec(spec: JobSpec, changes: Mapping[str, Any]) -> JobSpec:
    """The job as it is with the changes."""
    if BEGIN in changes:
        spec = replace(spec, begin_at=changes[BEGIN])
    if DEPENDENCY in changes:
        ends = spec.after is not None and spec.after.ends_if_never
        spec = replace(spec, after=parse_dependency(changes[DEPENDENCY], ends))
    if THROTTLE in changes and spec.matrix is not None:
        spec = replace(spec, matrix=replace(spec.matrix, max_parallel=changes[THROTTLE] or None))
    if MEMORY in changes:
        spec = replace(spec, request=replace(spec.request, mem_bytes=changes[MEMORY] or None))
    if CPUS in changes:
        spec = replace(spec, request=replace(spec.request, cpus=changes[CPUS]))
    return spec


def alter(run: LiveRun, index: int, changes: Mapping[str, Any]) -> None:
    """Keep the job's changed form and its priority, where these changes are any of ours."""
    if PRIORITY in changes:
        run.priorities[index] = int(changes[PRIORITY])
    if WHILE_IT_WAITS.isdisjoint(changes) and THROTTLE not in changes:
        return
    run.altered[index] = altered_spec(run.spec(index), changes)
    request = run.requests.get(index)
    if request is not None and MEMORY in changes:
        run.requests[index] = replace(request, mem_bytes=changes[MEMORY] or None)
    if request is not None and CPUS in changes:
        run.requests[index] = replace(run.requests[index], cpus=changes[CPUS])


def alter_again(run: LiveRun, changed: Iterable[tuple[int | None, Mapping[str, Any]]]) -> None:
    """After a restart: all changes in their order, before anything is decided by them."""
    for job, changes in changed:
        index = run.index_of(job) if job is not None else None
        if index is not None and is_readable(changes):
            alter(run, index, changes)


def ask_again(driver: Driver, run: LiveRun, index: int, now: float) -> None:
    """A job that waits is looked at anew: for others, for its time, or for room."""
    job = run.job_number(index)
    attempt = driver.by_job.get(job)
    if attempt is not None:
        attempt.request = run.request(index)
    if index in run.held or not run.plan.is_started(index):
        return
    driver.packer.remove(job)
    driver.depending.leave(job)
    driver.forget_begin(job)
    driver.make_ready(run, index, now)
