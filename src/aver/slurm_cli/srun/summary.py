"""The summary of all tasks of a step, for srun: only a failure needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.judge.fold import Lost, Running, Task, TaskEnd, task_summary
from aver.model.evidence import LaunchFailure
from aver.model.exit import ExitStatus


def summary(step: str, tasks: int, ends: Mapping[int, Mapping[str, Any]]) -> str:
    return task_summary(step, [Task(rank, *_end(rank, ends)) for rank in range(tasks)])


def _end(rank: int, ends: Mapping[int, Mapping[str, Any]]) -> tuple[TaskEnd, float | None, bool]:
    """The order in which ends were heard stands for their times."""
    message = ends.get(rank)
    if message is None:
        return Running(), None, False
    heard_at = float(list(ends).index(rank))
    raw = message["raw"]
    if raw is not None:
        return ExitStatus.from_wait(raw), heard_at, message["because"]
    detail = str(message["detail"])
    errno = detail.rpartition("errno ")[2].rstrip(")")
    if message["reason"] == "JobLaunchFailure" and errno.isdigit():
        operation, _, rest = detail.partition(" ")
        return LaunchFailure(operation, int(errno), rest.partition(":")[0]), heard_at, message["because"]
    return Lost(), heard_at, message["because"]
