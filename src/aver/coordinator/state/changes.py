"""What a person may change of a job: its time limit and priority, and while it waits its begin, size and dependency.

Pure but for the run and the attempt that are altered. The store keeps a change as what was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.run import LiveRun
from aver.model.job import JobSpec
from aver.model.record import replace
from aver.spec.sbatch.dependency import parse_dependency

BEGIN, DEPENDENCY, THROTTLE = "begin_at", "dependency", "throttle"
MEMORY, CPUS = "mem_bytes", "cpus"
PRIORITY, TIME_LIMIT = "priority", "time_s"
STEP = "step"  # its number, where the change is the time limit of a step
WHILE_IT_WAITS = frozenset({BEGIN, DEPENDENCY, MEMORY, CPUS})


def is_readable(changes: Mapping[str, Any]) -> bool:
    """Whether each of the values is of its kind."""
    numbers = [changes[name] for name in (THROTTLE, MEMORY, CPUS, TIME_LIMIT, STEP) if changes.get(name) is not None]
    begin, priority = changes.get(BEGIN), changes.get(PRIORITY, 0)
    try:
        parse_dependency(str(changes.get(DEPENDENCY, "")))
    except ValueError:
        return False
    are_numbers = all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 62 for one in numbers)
    return are_numbers and (begin is None or isinstance(begin, (int, float))) and isinstance(priority, int)


def read(detail: str) -> dict[str, Any]:
    """What an update asked for, from the detail of its event; nothing where that can't be read."""
    try:
        changes = json.loads(detail)
    except ValueError:
        return {}
    return changes if isinstance(changes, dict) and is_readable(changes) else {}


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


def alter_step(attempt: LiveAttempt | None, changes: Mapping[str, Any]) -> None:
    """Keep the time limit of a step that has not ended."""
    step = None if attempt is None or attempt.steps is None else attempt.steps.live.get(changes.get(STEP, -1))
    if step is not None and TIME_LIMIT in changes:
        step.spec = replace(step.spec, time_s=changes[TIME_LIMIT])
        step.limit_asked = True


def alter(run: LiveRun, index: int, attempt: LiveAttempt | None, changes: Mapping[str, Any]) -> None:
    """Keep the changes: what the next order and the next choice go by. `attempt` is the job's live one."""
    if TIME_LIMIT in changes:
        run.requests[index] = replace(run.request(index), time_s=changes[TIME_LIMIT])
        if attempt is not None:
            attempt.request = replace(attempt.request, time_s=changes[TIME_LIMIT])
            attempt.limit_asked = True
    if PRIORITY in changes:
        run.priorities[index] = int(changes[PRIORITY])
    if WHILE_IT_WAITS.isdisjoint(changes) and THROTTLE not in changes:
        return
    run.altered[index] = altered_spec(run.spec(index), changes)
    request = run.requests.get(index)
    if request is not None and MEMORY in changes:
        run.requests[index] = request = replace(request, mem_bytes=changes[MEMORY] or None)
    if request is not None and CPUS in changes:
        run.requests[index] = replace(request, cpus=changes[CPUS])
    if attempt is not None and not {MEMORY, CPUS}.isdisjoint(changes):
        attempt.request = run.request(index)
